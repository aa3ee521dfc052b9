import { spawnSync } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addCosignature, cosignLog } from './cosign.ts';
import { verifierKey } from './keys.ts';
import { logKey, ORIGIN, publishAll, temporaryFolder, witnessKey, writeLog } from './log.fixture.ts';
import { folderReader } from './log-reader.ts';
import { KEY_TYPE } from './note.ts';

const NAME = 'witness.example/w1';
const folder = temporaryFolder();
const program = folder.file('check-log');

beforeAll(() => {
  const source = join(import.meta.dirname, 'golang/check-log.go');
  const built = spawnSync('go', ['build', '-o', program, source], {
    encoding: 'utf8',
    // The packages of Debian, and no download.
    env: { ...process.env, GO111MODULE: 'off', GOPATH: '/usr/share/gocode', GOPROXY: 'off', GOFLAGS: '' },
  });
  expect(built.stderr).toBe('');
});
afterAll(() => folder[Symbol.dispose]());

/** A log that grew over the edge of a tile, with each checkpoint that it had. */
async function grow(log: string): Promise<string[]> {
  await writeLog(log, Array(253).keys());
  const seen: string[] = [];
  for (let n = 253; n < 259; n++) {
    seen.push(folder.file(`${n}.checkpoint`));
    copyFileSync(join(log, 'checkpoint'), folder.file(`${n}.checkpoint`));
    await publishAll(log, [n]);
  }
  const statePath = folder.file('witness');
  const witness = { name: NAME, key: witnessKey.secret, statePath, wall: Date.now };
  await cosignLog(folderReader(log), logKey.open, witness);
  addCosignature(log, readFileSync(statePath), logKey.open, witnessKey.open);
  return seen;
}

describe("Go's packages note and tlog", () => {
  it('read a log, prove each entry and each earlier checkpoint, and find a change', async () => {
    const log = folder.file('log');
    const seen = await grow(log);
    const check = (...checkpoints: string[]) =>
      spawnSync(
        program,
        [
          log,
          verifierKey(ORIGIN, KEY_TYPE.ed25519, logKey.open.bytes),
          verifierKey(NAME, KEY_TYPE.cosignature, witnessKey.open.bytes),
          ...checkpoints,
        ],
        { encoding: 'utf8' },
      );
    expect(check(...seen)).toMatchObject({ stdout: '259 entries, 6 earlier checkpoints\n', stderr: '' });
    await writeLog(folder.file('other'), [1, 0]);
    expect(check(join(folder.file('other'), 'checkpoint')).stderr).toContain('invalid transparency proof');
    const bundle = join(log, 'tile/entries/000');
    const bytes = readFileSync(bundle);
    writeFileSync(bundle, bytes.fill('x', 100, 101));
    expect(check().stderr).toContain('invalid transparency proof');
  });
});
