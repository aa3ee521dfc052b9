import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { Hunt, type Hunted, MOST_SEEDS } from './hunt.ts';
import type { Mutant } from './mutant.ts';
import { mutants } from './mutants.ts';
import { seedOf, withFinds } from './seeds.ts';

/**
 * Looks for each planted fault among the seeds from 1 on, and writes seeds.md with `--update`.
 *
 *     npm run sim -- mutants [--only <id>,<id>] [--update | --repeat]
 *
 * With `--repeat` it runs no more than the seed that seeds.md names for each.
 */
const { values } = parseArgs({
  options: {
    update: { type: 'boolean', default: false },
    repeat: { type: 'boolean', default: false },
    only: { type: 'string' },
  },
});
if (values.update && values.repeat) throw new Error('--update and --repeat exclude each other');
const document = new URL('./seeds.md', import.meta.url);

const read = (): string => readFileSync(document, 'utf8');

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function findAll(hunt: Hunt, wanted: readonly Mutant[]): Promise<Map<string, Hunted | null>> {
  const found = new Map<string, Hunted | null>();
  const queue = [...wanted];
  const take = async (): Promise<void> => {
    for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) {
      const first = values.repeat ? seedOf(mutant, read()) : 1;
      const hunted = await hunt.find(mutant, { first, last: values.repeat ? first : MOST_SEEDS });
      found.set(mutant.id, hunted);
      const [what] = hunted?.message.split('\n') ?? [];
      say(
        `${mutant.id}: ${hunted === null ? `not found ${values.repeat ? 'by its seed' : `in ${MOST_SEEDS} seeds`}` : `seed ${hunted.seed}, ${what}`}`,
      );
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, take));
  return found;
}

async function main(): Promise<void> {
  const only = values.only?.split(',');
  const unknown = only?.find((id) => !mutants.some((mutant) => mutant.id === id));
  if (unknown !== undefined) throw new Error(`there is no mutant ${unknown}`);
  const startedAt = performance.now();
  const hunt = new Hunt();
  const wanted = mutants.filter(({ id }) => only?.includes(id) ?? true);
  const found = await findAll(hunt, wanted).finally(() => hunt.end());
  const count = wanted.filter(({ id }) => found.get(id) !== null).length;
  const after = withFinds(read(), mutants, found);
  if (values.update) writeFileSync(document, after);
  const isPublished = after === read();
  say(
    `${count} of ${wanted.length} mutants found in ${Math.round((performance.now() - startedAt) / 1_000)} s`,
  );
  for (const [seed, message] of hunt.ownFailures)
    say(`without a mutant too, seed ${seed} fails: ${message.split('\n')[0]}`);
  if (!isPublished) say('simulation/mutants/seeds.md says otherwise: npm run sim -- mutants --update');
  const isWell = count === wanted.length && hunt.ownFailures.size === 0 && isPublished;
  process.exitCode = isWell ? 0 : 1;
}

await main();
