import { expect, it } from 'vitest';
import { describeFailure } from './runner/report.ts';
import type { Subject } from './runner/subject.ts';
import { prepareSimulation } from './simulations.ts';

/** What is simulated, how many seeds from 1 on, with how many commands, and whether the first one is repeated. */
it.each([
  ['orchestrator [orchestrator-seeds]', 3, 8, true],
  ['platforms [two-platforms-seeds]', 1, 24, false],
  ['hosts [hosts-seeds]', 1, 24, false],
  ['libvirt', 1, 12, false],
  ['incus', 1, 12, true],
  ['exec', 1, 12, false],
  ['openstack', 1, 12, false],
  ['marketplace [marketplace-seeds]', 2, 10, true],
])(
  'keeps every invariant over its first seeds, and repeats a run exactly (I27): %s',
  { timeout: 300_000 },
  async (name, seeds, commands, isRepeated) => {
    const subject = name.split(' ')[0] as Subject;
    const simulation = await prepareSimulation(subject);
    const run = async (seed: number): Promise<string> => {
      const outcome = await simulation.run(String(seed), commands);
      expect(outcome.failure && describeFailure(outcome, { subject })).toBeUndefined();
      return outcome.hash;
    };
    const hashes: string[] = [];
    for (let seed = 1; seed <= seeds; seed++) hashes.push(await run(seed));
    expect(new Set(hashes).size).toBe(seeds);
    if (isRepeated) expect(await run(1)).toBe(hashes[0]);
    await simulation.close();
  },
);
