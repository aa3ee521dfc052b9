import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { mainFile } from '../support/processes/process.ts';

it('examples/sandbox/curl/run.sh lives through the life of a machine', () => {
  const root = new URL('../..', import.meta.url).pathname;
  const env = { ...process.env, BERTH: `${process.execPath} ${mainFile}` };
  const { status, stdout, stderr } = spawnSync(`${root}examples/sandbox/curl/run.sh`, {
    env,
    encoding: 'utf8',
  });
  expect([status, stdout, stderr]).toEqual([0, 'PROVISIONING\nONLINE\n404\nONLINE\n404\n', '']);
});
