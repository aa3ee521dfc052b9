import { expect, it } from 'vitest';
import { describeFailure } from './runner/report.ts';
import type { Subject } from './runner/subject.ts';
import { prepareSimulation } from './simulations.ts';

const COMMANDS = 15;
/** How many seeds, by what is simulated. */
const SEEDS = {
  orchestrator: 2,
  platforms: 1,
  hosts: 1,
  libvirt: 1,
  incus: 1,
  exec: 1,
  openstack: 1,
  marketplace: 1,
};

it.each(Object.entries(SEEDS) as [Subject, number][])(
  'keeps every invariant on PostgreSQL, and repeats a run exactly: %s (I27) [seeds-on-postgres]',
  { timeout: 300_000 },
  async (subject, count) => {
    const simulation = await prepareSimulation(subject, 'postgres');
    const seeds = Array.from({ length: count }, (_, index) => String(index + 1));
    const hashes: string[] = [];
    for (const seed of [...seeds, ...(subject === 'orchestrator' ? ['1'] : [])]) {
      const outcome = await simulation.run(seed, COMMANDS);
      hashes.push(outcome.hash);
      expect(outcome.failure && describeFailure(outcome, { subject, on: 'postgres' })).toBeUndefined();
    }
    if (subject === 'orchestrator') expect(hashes.at(-1)).toBe(hashes[0]);
    await simulation.close();
  },
);
