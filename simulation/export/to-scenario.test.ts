import { rmSync } from 'node:fs';
import { expect, it } from 'vitest';
import { createSandbox } from '../../src/compose/sandbox/sandbox.ts';
import type { SandboxOptions } from '../../src/sandbox/options.ts';
import { scenarioSchema } from '../../src/sandbox/state/scenario-format.ts';
import { prepareSimulation } from '../simulations.ts';
import { toScenario } from './to-scenario.ts';

/** What a sandbox has after the run of a seed, which was exported. */
async function played(subject: Parameters<typeof toScenario>[1], seed: string, commands: number) {
  const simulation = await prepareSimulation(subject);
  try {
    const scenario = toScenario(await simulation.run(seed, commands), subject);
    const { clock: _clock, ...options } = scenarioSchema.parse(scenario).sandbox ?? {};
    await using sandbox = await createSandbox({ ...(options as SandboxOptions), rate_limits: false });
    const made = await sandbox.control.play(scenario);
    const strikes = await sandbox.control.faults.strikes();
    return { scenario, made: Object.keys(made), strikes: strikes.map(({ fault }) => fault) };
  } finally {
    rmSync(simulation.folder, { recursive: true, force: true });
  }
}

it('a seed of the simulation is a scenario that a sandbox plays, with its requests and its faults [sim-export]', async () => {
  const { scenario, made, strikes } = await played('orchestrator', '3', 15);
  expect(scenario.steps?.filter((step) => step.do === 'request').length).toBeGreaterThan(10);
  expect(made).toContain('instance-1');
  expect(strikes.length).toBeGreaterThan(0);
  expect(scenario.not_reproduced).toContainEqual(expect.stringContaining('several servers on one database'));
});

it('and so is one of the marketplace', async () => {
  const { made, strikes } = await played('marketplace', '4', 25);
  expect(made).toContain('deployment-1');
  expect(strikes.length).toBeGreaterThan(0);
});
