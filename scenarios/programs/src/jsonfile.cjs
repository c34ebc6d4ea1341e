// Counts the runs in a JSON file with jsonfile. Its first argument is the folder in which the package is installed.

const { createRequire } = require('node:module')
const { join } = require('node:path')

const [, , packages, name] = process.argv
const jsonfile = createRequire(join(packages, 'package.json'))('jsonfile')

const state = jsonfile.readFileSync(name)
state.runs += 1
jsonfile.writeFileSync(name, state)
