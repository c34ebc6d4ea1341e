//! What setting a POSIX access control list does to the mode of a file: the kernel keeps a list that says no more than a
//! mode as the mode alone.

use std::collections::BTreeMap;

/// The attribute by which a list is set.
const ACCESS_LIST: &str = "system.posix_acl_access";

const VERSION: u32 = 2;
const USER_OBJ: u16 = 0x01;
const GROUP_OBJ: u16 = 0x04;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;

/// Sets an extended attribute, or removes it where there is no value. A tree holds attributes of users alone; of others, a
/// list shows in the mode.
pub(crate) fn set_attribute(
    mode: &mut u32,
    attributes: &mut BTreeMap<String, Vec<u8>>,
    name: &str,
    value: Option<&[u8]>,
) {
    match value {
        Some(list) if name == ACCESS_LIST => *mode = mode_with_list(*mode, list).unwrap_or(*mode),
        _ if !name.starts_with("user.") => {}
        Some(value) => _ = attributes.insert(name.to_owned(), value.to_owned()),
        None => _ = attributes.remove(name),
    }
}

/// The mode that a list gives to a file that has this one; `None` where the value is no list.
fn mode_with_list(mode: u32, list: &[u8]) -> Option<u32> {
    let (version, entries) = list.split_first_chunk::<4>()?;
    if u32::from_le_bytes(*version) != VERSION || entries.len() % 8 != 0 {
        return None;
    }
    let (mut user, mut group, mut mask, mut other) = (0, 0, None, 0);
    for entry in entries.chunks_exact(8) {
        let permissions = u32::from(u16::from_le_bytes([entry[2], entry[3]])) & 0o7;
        match u16::from_le_bytes([entry[0], entry[1]]) {
            USER_OBJ => user = permissions,
            GROUP_OBJ => group = permissions,
            MASK => mask = Some(permissions),
            OTHER => other = permissions,
            _ => {}
        }
    }
    Some(mode & !0o777 | user << 6 | mask.unwrap_or(group) << 3 | other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[(u16, u16)]) -> Vec<u8> {
        let mut bytes = VERSION.to_le_bytes().to_vec();
        for (tag, permissions) in entries {
            bytes.extend(tag.to_le_bytes());
            bytes.extend(permissions.to_le_bytes());
            bytes.extend(u32::MAX.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn a_list_is_a_mode_and_its_mask_stands_for_the_group() {
        let plain = list(&[(USER_OBJ, 6), (GROUP_OBJ, 4), (OTHER, 4)]);
        assert_eq!(mode_with_list(0o600, &plain), Some(0o644));
        assert_eq!(mode_with_list(0o2600, &plain), Some(0o2644));
        let masked = list(&[(USER_OBJ, 7), (0x02, 7), (GROUP_OBJ, 7), (MASK, 5), (OTHER, 0)]);
        assert_eq!(mode_with_list(0o600, &masked), Some(0o750));
        assert_eq!(mode_with_list(0o600, b"no list"), None);
        assert_eq!(mode_with_list(0o600, &plain[..plain.len() - 1]), None);
    }
}
