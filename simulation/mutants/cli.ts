import { fork } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { HUNT_COMMANDS, type Hunted, MOST_SEEDS } from './hunt.ts';
import { type Mutant, mutants } from './mutants.ts';
import { replaceTable, toTable } from './table.ts';

const { values } = parseArgs({
  options: { update: { type: 'boolean', default: false }, only: { type: 'string' } },
});
const document = new URL('../../docs/reliability.md', import.meta.url);

/** What a process says that hunts for the mutant; without a mutant, what the program itself does with one seed. */
function ask<Answer>(args: string[], mutant?: string): Promise<Answer | null> {
  return new Promise((resolve, reject) => {
    const child = fork(new URL('hunt.ts', import.meta.url), args, {
      ...(mutant !== undefined && {
        execArgv: ['--import', new URL('hook.ts', import.meta.url).href],
        env: { ...process.env, BERTH_SIM_MUTANT: mutant },
      }),
    });
    let answer: Answer | null = null;
    child.on('message', (message: Answer | null) => {
      answer = message;
    });
    child.on('error', reject);
    child.on('exit', (code) =>
      code === 0 ? resolve(answer) : reject(new Error(`${mutant}: the hunt ended with ${code}`)),
    );
  });
}

/** @throws {Error} if the program fails the seed without the mutant: then nothing was learnt of the mutant */
async function huntFor({ id }: Mutant): Promise<Hunted | null> {
  const hunted = await ask<Hunted>([], id);
  const own = hunted === null ? null : await ask<string>([String(hunted.seeds)]);
  if (own === null) return hunted;
  throw new Error(`${id}: the program itself fails seed ${hunted?.seeds}: ${own}`);
}

async function huntAll(wanted: readonly Mutant[]): Promise<Map<string, Hunted | null>> {
  const found = new Map<string, Hunted | null>();
  const queue = [...wanted];
  const take = async (): Promise<void> => {
    for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) {
      const hunted = await huntFor(mutant);
      found.set(mutant.id, hunted);
      const what =
        hunted === null ? `not found in ${MOST_SEEDS} seeds` : `seed ${hunted.seeds}: ${hunted.message}`;
      process.stdout.write(`${mutant.id}: ${what.split('\n')[0]}\n`);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, take));
  return found;
}

const wanted = mutants.filter(({ id }) => values.only === undefined || values.only.split(',').includes(id));
const found = await huntAll(wanted);
const isEachFound = [...found.values()].every((hunted) => hunted !== null);
if (values.only === undefined) {
  const before = readFileSync(document, 'utf8');
  const after = replaceTable(before, toTable(mutants, found, HUNT_COMMANDS));
  if (values.update) writeFileSync(document, after);
  else if (after !== before) {
    process.stdout.write(
      'The table in docs/reliability.md is not this one: npm run sim:mutants -- --update\n',
    );
    process.exitCode = 1;
  }
}
if (!isEachFound) process.exitCode = 1;
