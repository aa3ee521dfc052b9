import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { sourceOfBerth } from '../../test/support/processes/built-programs.ts';
import { BerthProcess } from '../../test/support/processes/process.ts';

/** The planted fault: an account that is suddenly empty is believed. */
const MUTANT = 'empty-account';
/** By this seed an instance whose machine runs goes ERROR, which lasts; by others it goes DESTROYING. */
const SEED = '115';
const root = new URL('../..', import.meta.url);
const hook = {
  NODE_OPTIONS: `--import ${new URL('simulation/mutants/hook.ts', root)}`,
  BERTH_SIM_MUTANT: MUTANT,
};

interface Dump {
  providers: Record<
    string,
    { machines: { spec: { ref: string }; power: string }[]; instances: { id: string; status: string }[] }
  >;
}

/** The instances that read ERROR or OFFLINE although their machine runs, after the scenario, in a sandbox of this program. */
async function wronglyEnded(scenario: string, env: Record<string, string>): Promise<string[]> {
  const args = ['sandbox', '--port', '0', '--json', '--scenario', scenario];
  await using berth = new BerthProcess(args, { env, entry: sourceOfBerth });
  const { control } = JSON.parse(await berth.waitForOutput((stdout) => /^\{.*\}$/m.exec(stdout)?.[0]));
  const response = await fetch(`${control.base_url}/dump`, {
    headers: { authorization: `Bearer ${control.api_key}` },
  });
  const { providers } = (await response.json()) as Dump;
  const [{ machines, instances } = { machines: [], instances: [] }] = Object.values(providers);
  expect(instances.length).toBeGreaterThan(0);
  const running = machines.filter(({ power }) => power === 'running').map(({ spec }) => spec.ref);
  return instances
    .filter(({ id, status }) => ['ERROR', 'OFFLINE'].includes(status) && running.includes(`berth-${id}`))
    .map(({ id }) => id);
}

it('a failing seed, exported, shows its planted fault in a sandbox, and none in the sound program [sim-export-fails]', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-sim-export-'));
  const file = join(folder, 'scenario.yaml');
  const args = ['--mutant', MUTANT, '--seed', SEED, '--commands', '100', '--export', file];
  const { status, stdout } = spawnSync(process.execPath, ['simulation/cli.ts', ...args], {
    cwd: root,
    encoding: 'utf8',
  });
  expect([status, stdout]).toEqual([1, expect.stringContaining('repeat it:')]);
  expect(readFileSync(file, 'utf8')).toContain(`--mutant ${MUTANT}`);
  expect(await wronglyEnded(file, {})).toEqual([]);
  expect(await wronglyEnded(file, hook)).not.toEqual([]);
  rmSync(folder, { recursive: true });
});
