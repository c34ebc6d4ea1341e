// Counts the runs in a JSON file with lowdb. Its first argument is the folder in which the package is installed.

import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const [, , packages, name] = process.argv
const { JSONFilePreset } = await import(pathToFileURL(join(packages, 'node_modules/lowdb/lib/node.js')))

const db = await JSONFilePreset(name, { runs: 0 })
await db.update((state) => (state.runs += 1))
