import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { digestOf, REDACTED } from '../certificate/digest.ts';
import { toBundle } from './bundle.ts';
import { addCosignature, cosignLog } from './cosign.ts';
import {
  entryOf,
  logKey,
  newKey,
  ORIGIN,
  publishAll,
  publishTo,
  signedReport,
  temporaryFolder,
  witnessKey,
  writeLog,
} from './log.fixture.ts';
import { folderReader } from './log-reader.ts';
import { formatProof } from './proof.ts';
import { type LogVerification, verifyInLog } from './verify-log.ts';

let folder: ReturnType<typeof temporaryFolder>;
let log: string;
let statePath: string;
beforeEach(async () => {
  folder = temporaryFolder();
  [log, statePath] = [folder.file('log'), folder.file('seen')];
  await publishAll(log, [0, 1, 2]);
});
afterEach(() => folder[Symbol.dispose]());

const verify = (n: number, more: Partial<LogVerification> = {}, path = log) =>
  verifyInLog(signedReport(n), {
    logKey: logKey.open,
    witnessKeys: [],
    reader: folderReader(path),
    ...more,
  });
const seen = () => verify(0, { statePath });
const witness = () => ({
  name: 'witness.example/w1',
  key: witnessKey.secret,
  statePath: folder.file('witness'),
  wall: () => Date.parse('2026-05-01T10:00:00Z'),
});
/** As a witness beside the folder of the log. */
async function cosign(path = log): Promise<void> {
  await cosignLog(folderReader(path), logKey.open, witness());
  const cosigned = readFileSync(witness().statePath);
  expect(addCosignature(path, cosigned, logKey.open, witnessKey.open)).toBe(true);
}

describe('a report in a log', () => {
  it('is proved, and so is the log since the last time', async () => {
    expect(await seen()).toMatchObject({ proof: { index: 0, checkpoint: { size: 3 } } });
    await publishAll(log, [3, 4]);
    const { proof, earlier } = await verify(4, { statePath });
    expect({ index: proof.index, earlier: earlier?.size }).toEqual({ index: 4, earlier: 3 });
    expect((await verify(1, { statePath })).earlier?.size).toBe(5);
  });

  it('is proved whatever was removed from the report that may be', async () => {
    const report = {
      ...signedReport(1),
      base_url: { [REDACTED]: digestOf(signedReport(1).base_url) } as never,
    };
    const verification = { logKey: logKey.open, witnessKeys: [], reader: folderReader(log) };
    expect((await verifyInLog(report, verification)).proof.index).toBe(1);
    const other = folder.file('other');
    await publishTo(other, report);
    expect((await verify(1, {}, other)).proof.index).toBe(0);
    expect((await verifyInLog(report, { ...verification, reader: folderReader(other) })).proof.index).toBe(0);
  });

  it('is shown with the other reports of its target that came later', async () => {
    const later = signedReport(7, { outcome: 'NON-CONFORMANT' });
    const hidden = { ...later, base_url: { [REDACTED]: digestOf(later.base_url) } as never };
    await publishTo(log, hidden);
    await publishTo(log, signedReport(8, { base_url: 'https://other.example/v1' }));
    const found = (await verify(1)).later ?? [];
    expect(found.map(({ index, report }) => `${index} ${report.outcome}`)).toEqual([
      '2 CONFORMANT',
      '3 NON-CONFORMANT',
    ]);
    expect((await verify(2)).later).toHaveLength(1);
  });

  it('that was not published is refused', async () => {
    await expect(verify(9)).rejects.toThrow(`the log ${ORIGIN} has 3 entries, and none is of this report`);
    const { signature: _, ...unsigned } = signedReport(1);
    const verification = { logKey: logKey.open, witnessKeys: [], reader: folderReader(log) };
    await expect(verifyInLog(unsigned, verification)).rejects.toThrow('it is not signed');
  });
});

describe('a log whose operator', () => {
  it.each<[string, RegExp, () => void | Promise<void>]>([
    [
      'removed the last entry',
      /rolled back: it has 2 entries, and it had signed 3/,
      () => writeLog(log, [0, 1]),
    ],
    [
      'removed an entry and added another',
      /split view.*signed two roots for 3 entries/,
      () => writeLog(log, [0, 2, 5]),
    ],
    [
      'removed an entry and added two',
      /rewritten.*4 entries do not begin with the 3/,
      () => writeLog(log, [0, 2, 5, 6]),
    ],
    ['replaced an entry', /rewritten/, () => writeLog(log, [0, 7, 2, 3])],
    ['changed the order', /signed two roots/, () => writeLog(log, [1, 0, 2])],
    ['began anew', /rolled back/, () => writeLog(log, [0])],
    [
      'gave it another name',
      /the log is log.example\/new/,
      () => writeLog(log, [0, 1, 2, 3], 'log.example/new'),
    ],
  ])('%s is found by whoever saw it before, who keeps both checkpoints', async (_what, why, attack) => {
    await seen();
    const before = readFileSync(statePath);
    await attack();
    await expect(verify(0, { statePath })).rejects.toThrow(why);
    await expect(verify(0, { statePath })).rejects.toThrow('keep them, they are the proof');
    expect(readFileSync(statePath)).toEqual(before);
    expect(readFileSync(`${statePath}.conflict`)).toEqual(readFileSync(join(log, 'checkpoint')));
    // Without the checkpoint of before, nothing is wrong with it.
    await verify(0);
  });

  const spoil = (path: string, edit: (bytes: Buffer) => Buffer): void =>
    writeFileSync(join(log, path), edit(readFileSync(join(log, path))));
  const bundle = 'tile/entries/000.p/3';

  it.each<[string, RegExp, () => void]>([
    [
      'changed another entry',
      /changed or removed/,
      () => spoil(bundle, () => toBundle([0, 9, 2].map(entryOf))),
    ],
    [
      'removed the entry from its bundle',
      /cut short/,
      () => spoil(bundle, () => toBundle([0, 2].map(entryOf))),
    ],
    ['removed the bundle', /has no tile\/entries\/000.p\/3/, () => rmSync(join(log, bundle))],
    [
      'changed a tile',
      /does not prove entry 1/,
      () => spoil('tile/0/000.p/3', (tile) => tile.fill((tile[70] ?? 0) ^ 1, 70, 71)),
    ],
    ['removed a tile', /has no tile\/0\/000.p\/3/, () => rmSync(join(log, 'tile/0/000.p/3'))],
    [
      'cut a tile short',
      /tile\/0\/000.p\/3 of the log is cut/,
      () => spoil('tile/0/000.p/3', (tile) => tile.subarray(1)),
    ],
    ['changed the checkpoint', /did not sign/, () => spoil('checkpoint', (text) => text.fill('4', 18, 19))],
  ])('%s but not the checkpoint is found at once', async (_what, why, attack) => {
    attack();
    await expect(verify(1)).rejects.toThrow(why);
  });

  it('uses another key, or the name of another log, is refused', async () => {
    await expect(verify(1, { logKey: newKey().open })).rejects.toThrow('did not sign');
    await expect(verify(1, { logKey: { ...logKey.open, name: 'log.example/x' } })).rejects.toThrow(
      'and not of',
    );
  });

  it('removed its checkpoint has no log', async () => {
    rmSync(join(log, 'checkpoint'));
    await expect(verify(1)).rejects.toThrow('has no checkpoint');
  });
});

describe('a proof', () => {
  const save = async (n: number): Promise<Buffer> => Buffer.from(formatProof((await verify(n)).proof));
  const offline = (n: number, proof: Buffer, more: Partial<LogVerification> = {}) =>
    verifyInLog(signedReport(n), { logKey: logKey.open, witnessKeys: [], proof, ...more });

  it('proves the report without the log', async () => {
    expect(await offline(1, await save(1))).toMatchObject({ proof: { index: 1, checkpoint: { size: 3 } } });
  });

  it('is of one report, one log and one key', async () => {
    const proof = await save(1);
    await expect(offline(2, proof)).rejects.toThrow('the proof is of another report');
    await expect(offline(1, proof, { logKey: newKey().open })).rejects.toThrow('did not sign');
    await expect(offline(1, proof, { witnessKeys: [witnessKey.open] })).rejects.toThrow('has not cosigned');
  });

  it.each<[string, (text: string) => string]>([
    ['another index', (text) => text.replace('index 1', 'index 2')],
    ['an index of two forms', (text) => text.replace('index 1', 'index 01')],
    ['a hash less', (text) => text.replace(/(index 1\n).*\n/, '$1')],
    ['another entry', (text) => text.replace(/extra .*/, `extra ${entryOf(2).toString('base64')}`)],
    ['another version', (text) => text.replace('@v1', '@v2')],
    ['no checkpoint', (text) => text.split('\n\n')[0] ?? ''],
    ['another size', (text) => text.replace('\n3\n', '\n4\n')],
  ])('with %s is refused', async (_what, change) => {
    const changed = Buffer.from(change((await save(1)).toString()));
    await expect(offline(1, changed)).rejects.toThrow(/the proof is wrong/);
  });

  it('beside the log demands that the log still has what it proved', async () => {
    const proof = await save(1);
    await publishAll(log, [3]);
    expect((await verify(1, { proof })).proof.checkpoint.size).toBe(4);
    await writeLog(log, [0, 3, 1, 4]);
    await expect(verify(1, { proof })).rejects.toThrow('rewritten');
  });
});

describe('a witness', () => {
  const cosigned = (n: number, path = log) => verify(n, { witnessKeys: [witnessKey.open] }, path);

  it('cosigns what it proved to be the log that it knew, and a verifier demands it', async () => {
    await expect(cosigned(1)).rejects.toThrow('has not cosigned the checkpoint of 3 entries');
    await cosign();
    expect((await cosigned(1)).cosigned).toMatchObject([
      { name: 'witness.example/w1', wallMs: witness().wall() },
    ]);
    await publishAll(log, [3]);
    await expect(cosigned(1)).rejects.toThrow('has not cosigned');
    await cosign();
    expect((await cosigned(3)).cosigned).toHaveLength(1);
  });

  it('of another key is not accepted', async () => {
    await cosign();
    const other = { witnessKeys: [witnessKey.open, newKey().open] };
    await expect(verify(1, other)).rejects.toThrow('the witness with the key');
    const renamed = { witnessKeys: [{ ...witnessKey.open, name: 'w2' }] };
    await expect(verify(1, renamed)).rejects.toThrow('w2 has not cosigned');
  });

  it('keeps a proof good that it cosigned, while the log has grown since', async () => {
    await cosign();
    const proof = Buffer.from(formatProof((await cosigned(1)).proof));
    await publishAll(log, [3]);
    const found = await verify(1, { proof, witnessKeys: [witnessKey.open] });
    expect(found).toMatchObject({ cosigned: [{}], proof: { checkpoint: { size: 3 } } });
    await expect(verify(3, { witnessKeys: [witnessKey.open] })).rejects.toThrow('has not cosigned');
  });

  it('of which a fresh cosignature is demanded finds a log that shows an old view of itself', async () => {
    await cosign();
    const hour = 3_600_000;
    const at = (wallMs: number) => ({
      witnessKeys: [witnessKey.open],
      freshness: { maxAgeMs: hour, wallMs: witness().wall() + wallMs },
    });
    expect((await verify(1, at(hour))).cosigned).toHaveLength(1);
    expect((await verify(1, at(-300_000))).cosigned).toHaveLength(1);
    await expect(verify(1, at(2 * hour))).rejects.toThrow('cosigned it 2.0 hours ago');
    await expect(verify(1, at(-hour))).rejects.toThrow('a time that has not come yet');
  });

  it('is not the log itself', async () => {
    await expect(verify(1, { witnessKeys: [logKey.open] })).rejects.toThrow('no witness of itself');
  });

  it.each<[string, RegExp, number[]]>([
    ['a log that was rolled back', /rolled back/, [0, 1]],
    ['a second view of the same size', /split view/, [0, 1, 5]],
    ['a longer log that leaves an entry out', /rewritten/, [0, 2, 3, 4]],
  ])('refuses %s, and keeps its state', async (_what, why, numbers) => {
    await cosign();
    const before = readFileSync(witness().statePath);
    await writeLog(log, numbers);
    await expect(cosign()).rejects.toThrow(why);
    expect(readFileSync(witness().statePath)).toEqual(before);
    expect(readFileSync(join(log, 'checkpoint'), 'utf8')).not.toContain(`— ${witnessKey.open.name} `);
    await expect(cosigned(0)).rejects.toThrow('has not cosigned');
  });

  it('refuses a log that does not show an entry that it counts', async () => {
    writeFileSync(join(log, 'tile/entries/000.p/3'), toBundle([0, 9, 2].map(entryOf)));
    await expect(cosign()).rejects.toThrow('changed or removed');
    expect(existsSync(witness().statePath)).toBe(false);
  });

  it('finds a split view that is shown to two verifiers: one of them gets no cosigned checkpoint', async () => {
    const other = folder.copy('log', 'other');
    await publishAll(log, [3]);
    await publishAll(other, [4]);
    // Each verifier sees a log with nothing wrong in it.
    await verify(3, { statePath: folder.file('first') });
    await verify(4, { statePath: folder.file('second') }, other);
    await cosign(log);
    await expect(cosign(other)).rejects.toThrow('split view');
    expect((await cosigned(3)).cosigned).toHaveLength(1);
    await expect(cosigned(4, other)).rejects.toThrow('has not cosigned');
    const stolen = readFileSync(witness().statePath);
    expect(addCosignature(other, stolen, logKey.open, witnessKey.open)).toBe(false);
    // Without a witness, two verifiers who exchange their checkpoints find it too.
    await expect(verify(3, { statePath: folder.file('second') })).rejects.toThrow('split view');
  });

  it('has a cosignature that only its key makes', async () => {
    await cosignLog(folderReader(log), logKey.open, { ...witness(), key: newKey().secret });
    const forged = readFileSync(witness().statePath);
    expect(() => addCosignature(log, forged, logKey.open, witnessKey.open)).toThrow('did not cosign');
  });
});
