// Runs mathjs beside us: `node mathjs.mjs HOME examples` runs every documented example, `… evaluate` a JSON list of expressions
// from standard input, `… speed` measures them. HOME is where npm installed mathjs. Prints JSON.
import { createRequire } from 'node:module'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'

const [home, task] = process.argv.slice(2)
const { create, all, docs } = createRequire(resolve(home, 'index.js'))('mathjs')

// A number keeps all its digits; everything else is compared as the text mathjs writes.
function answer (math, evaluate) {
  try {
    const value = evaluate()
    const type = math.typeOf(value)
    if (type === 'number' && Number.isFinite(value)) return { type, number: value }
    return { type, text: math.format(value, { precision: 14 }) }
  } catch (error) {
    return { error: error.message }
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
  const math = create(all, {})
  const units = math.Unit.UNIT_SYSTEMS.auto
  const untouched = { ...units }
  return input().map(expression => {
    for (const base of Object.keys(units)) if (!(base in untouched)) delete units[base]
    Object.assign(units, untouched)
    return answer(math, () => math.evaluate(expression))
  })
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

console.log(JSON.stringify({ examples, evaluate, speed }[task]()))
