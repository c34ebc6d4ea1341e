// Counts the runs in a JSON file, as most programs for Node save what they know.

import { readFileSync, writeFileSync } from 'node:fs'

const name = process.argv[2]
const state = JSON.parse(readFileSync(name, 'utf8'))
state.runs += 1
writeFileSync(name, JSON.stringify(state))
