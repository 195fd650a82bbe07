// Runs mathjs beside us: `node mathjs.mjs HOME examples` runs every documented example, `… evaluate` a JSON list of expressions
// from standard input, `… functions` names what can be called, `… speed` measures. HOME is where npm installed mathjs. Prints JSON.
import { createRequire } from 'node:module'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import vm from 'node:vm'

const [home, task] = process.argv.slice(2)
const requirePeer = createRequire(resolve(home, 'index.js'))
let { create, all, docs } = requirePeer('mathjs')

// An answer that was cut off leaves its big numbers half-way through a computation: from there on they are rounded wrongly.
function reload () {
  for (const file of Object.keys(requirePeer.cache)) delete requirePeer.cache[file]
  ;({ create, all, docs } = requirePeer('mathjs'))
}

// Some questions keep mathjs busy for ever: each gets so many milliseconds; its own examples all end.
const PATIENCE = task === 'examples' ? 20000 : 400
const context = vm.createContext({})
const script = new vm.Script('ask()')

// A value with all its digits: a number as itself, everything else as the text mathjs writes.
function answer (math, evaluate) {
  try {
    context.ask = () => {
      const value = evaluate()
      const type = math.typeOf(value)
      if (type === 'number' && Number.isFinite(value)) return { type, number: value }
      return { type, text: math.format(value) }
    }
    return script.runInContext(context, { timeout: PATIENCE })
  } catch (error) {
    if (error?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return { endless: true }
    return { error: String(error?.message) }
  }
}

// A fresh instance per documented item, its statements in order: some of them change settings or create units.
function examples () {
  return Object.entries(docs).map(([item, { category, examples }]) => {
    const math = create(all, {})
    const parser = math.parser()
    const statements = examples.map(expression => ({ expression, ...answer(math, () => parser.evaluate(expression)) }))
    return { item, category: category ?? 'Physical constants', statements }
  })
}

function input () {
  return JSON.parse(readFileSync(0, 'utf8'))
}

// One instance for all: only the units that answers are written in have a memory, and it is wiped between expressions.
function evaluate () {
  let math, units, untouched
  const begin = () => {
    math = create(all, {})
    units = math.Unit.UNIT_SYSTEMS.auto
    untouched = { ...units }
  }
  begin()
  return input().map(expression => {
    for (const base of Object.keys(units)) if (!(base in untouched)) delete units[base]
    Object.assign(units, untouched)
    const given = answer(math, () => math.evaluate(expression))
    if (given.endless) {
      reload()
      begin()
    }
    return given
  })
}

function functions () {
  const math = create(all, {})
  return Object.keys(math.expression.mathWithTransform).filter(name => typeof math[name] === 'function')
}

// Nanoseconds per parse and evaluation: the best of many short rounds, after a warm-up.
function speed () {
  const math = create(all, {})
  return input().map(expression => {
    let best = Infinity
    for (let round = 0; round < 60; round++) {
      const times = 400
      const start = process.hrtime.bigint()
      for (let i = 0; i < times; i++) math.evaluate(expression)
      best = Math.min(best, Number(process.hrtime.bigint() - start) / times)
    }
    return { expression, nanoseconds: best }
  })
}

console.log(JSON.stringify({ examples, evaluate, functions, speed }[task]()))
