import { spawn } from 'node:child_process';
import { once } from 'node:events';
import nodeFs, {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { asOrdinaryUser } from '../../test/support/processes/ordinary-user.ts';
import { audit } from './audit.ts';
import { toBundle } from './bundle.ts';
import { lockFile } from './lock.ts';
import {
  entryOf,
  logKey,
  newKey,
  ORIGIN,
  publishAll,
  publishTo,
  signedReport,
  temporaryFolder,
  writeLog,
} from './log.fixture.ts';
import { type Log, openLog } from './log.ts';
import { type FileSystem, LogDisk } from './log-disk.ts';
import { folderReader } from './log-reader.ts';
import { isIncluded, leafHash } from './merkle.ts';
import { publish } from './publish.ts';

let folder: ReturnType<typeof temporaryFolder>;
let log: string;
beforeEach(() => {
  folder = temporaryFolder();
  log = folder.file('log');
});
afterEach(() => folder[Symbol.dispose]());

const open = (path = log): Promise<Log> => openLog(folderReader(path), logKey.open);

/** The ids of the runs in the log, after all of it was proved, by its entries and by its tiles. */
async function runsIn(path = log): Promise<string[]> {
  const opened = await open(path);
  const { wanted } = await audit(opened, () => true);
  for (const { index, bytes } of wanted.slice(-3)) await opened.proveInclusion(index, bytes);
  return wanted.map(({ bytes }) => JSON.parse(bytes.toString()).run_id);
}

const filesOf = (path: string): string[] =>
  readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(path.length + 1))
    .toSorted();

describe('publish', () => {
  it('appends reports one after the other, and proves each', async () => {
    for (const n of [0, 1, 2, 3, 4]) {
      const { index, entry, path, checkpoint, isNew } = await publishTo(log, signedReport(n));
      expect({ index, size: checkpoint.size, isNew }).toEqual({ index: n, size: n + 1, isNew: true });
      expect(isIncluded(leafHash(entry), index, path, checkpoint)).toBe(true);
    }
    expect(await runsIn()).toEqual(['run-0', 'run-1', 'run-2', 'run-3', 'run-4']);
    expect(filesOf(log).filter((path) => path.startsWith('tile/0'))).toEqual(
      [1, 2, 3, 4, 5].map((width) => `tile/0/000.p/${width}`),
    );
  });

  it('appends no report twice, and proves it by the newest checkpoint', async () => {
    await publishAll(log, [0, 1, 2]);
    const again = await publishTo(log, signedReport(1));
    expect(again).toMatchObject({ index: 1, isNew: false, checkpoint: { size: 3 } });
    expect(isIncluded(leafHash(again.entry), 1, again.path, again.checkpoint)).toBe(true);
    expect((await open()).checkpoint.size).toBe(3);
  });

  it('goes from a full tile to the next, and then removes the partial ones', async () => {
    await writeLog(log, Array(254).keys());
    await publishAll(log, [254]);
    expect(existsSync(join(log, 'tile/0/000.p/255'))).toBe(true);
    const earlier = await open();
    await publishAll(log, [255, 256, 257]);
    expect(filesOf(log)).toEqual([
      '.lock',
      'checkpoint',
      'tile/0/000',
      'tile/0/001.p/1',
      'tile/0/001.p/2',
      'tile/1/000.p/1',
      'tile/entries/000',
      'tile/entries/001.p/1',
      'tile/entries/001.p/2',
    ]);
    expect(await runsIn()).toHaveLength(258);
    // Who still has the checkpoint of 255 reads the full tile in place of the partial one.
    await (await open()).proveConsistency(earlier.checkpoint);
    expect((await audit(earlier, () => true)).wanted).toHaveLength(255);
    await earlier.proveInclusion(7, entryOf(7));
  });

  it('needs a name for a new log, and refuses another name or key for it later', async () => {
    const { secret: key } = logKey;
    const unnamed = publish(signedReport(0), { disk: new LogDisk(log), key });
    await expect(unnamed).rejects.toThrow('name it with --origin');
    await expect(publishTo(log, signedReport(0), { origin: 'two words' })).rejects.toThrow('no space');
    await publishTo(log, signedReport(0));
    await expect(publishTo(log, signedReport(1), { origin: 'log.example/other' })).rejects.toThrow(
      `it is of the log ${ORIGIN}, and not of log.example/other`,
    );
    await expect(publishTo(log, signedReport(1), { key: newKey().secret })).rejects.toThrow('did not sign');
    expect(await runsIn()).toEqual(['run-0']);
  });
});

describe('a publish that is killed', () => {
  /** A disk that fails at its call number `fatal` and after it. A write then writes half. */
  function failing(fatal: number): { disk: LogDisk; calls: () => number } {
    let calls = 0;
    const counted = ['openSync', 'writeSync', 'fsyncSync', 'linkSync', 'renameSync', 'rmSync', 'mkdirSync'];
    const fs = new Proxy(nodeFs, {
      get: (target, name: keyof FileSystem) => {
        if (!counted.includes(name)) return target[name];
        return (...args: unknown[]) => {
          calls++;
          if (calls === fatal && name === 'writeSync')
            nodeFs.writeSync(args[0] as never, (args[1] as Buffer).subarray(0, 40));
          if (calls >= fatal) throw new Error('killed');
          return (target[name] as (...given: unknown[]) => unknown)(...args);
        };
      },
    });
    return { disk: new LogDisk(log, { fs: fs as FileSystem }), calls: () => calls };
  }

  it.each([
    { size: 0, before: 'a new log', step: 1 },
    { size: 2, before: 'a partial tile', step: 1 },
    { size: 255, before: 'the last entry of a tile', step: 3 },
    { size: 256, before: 'the first entry of a tile', step: 3 },
  ])(
    'at any write after $size entries leaves a whole log, which the next one continues',
    async ({ size, step }) => {
      if (size > 0) await writeLog(folder.file('base'), Array(size).keys());
      else mkdirSync(folder.file('base'));
      const before = Array.from({ length: size }, (_, n) => `run-${n}`);
      const outcomes = new Set<string>();
      let isWhole = false;
      for (let fatal = 1; !isWhole; fatal += step) {
        folder.copy('base', 'log');
        const { disk } = failing(fatal);
        isWhole = await publishTo(log, signedReport(1000), { disk }).then(
          () => true,
          () => false,
        );
        const hasCheckpoint = existsSync(join(log, 'checkpoint'));
        const left = hasCheckpoint ? await runsIn() : [];
        expect([before, [...before, 'run-1000']]).toContainEqual(left);
        const seen = hasCheckpoint ? (await open()).checkpoint : undefined;
        // The entry that was begun comes first.
        await publishTo(log, signedReport(2000));
        await publishTo(log, signedReport(1000));
        const runs = await runsIn();
        outcomes.add(runs.slice(size).join());
        if (seen !== undefined) await (await open()).proveConsistency(seen);
        expect(filesOf(log)).not.toContain('.unfinished');
        if (size === 255) expect(existsSync(join(log, 'tile/entries/000.p'))).toBe(false);
      }
      expect(outcomes).toEqual(new Set(['run-2000,run-1000', 'run-1000,run-2000']));
    },
  );
});

describe('several processes', () => {
  // The suite without the server's code, which takes longer to load than this takes.
  const main = `import { conformance } from ${JSON.stringify(join(import.meta.dirname, '../cli.ts'))};
    process.exitCode = await conformance(process.argv.slice(1));`;

  it('that publish at once append all reports, and sign no two roots for one size', async () => {
    const key = folder.file('log.pem');
    writeFileSync(key, logKey.pem);
    await publishTo(log, signedReport(0));
    const ended = [1, 2].map(async (n) => {
      const report = folder.file(`${n}.json`);
      writeFileSync(report, JSON.stringify(signedReport(n)));
      const args = ['publish', report, '--log', log, '--log-key', key];
      const child = spawn(process.execPath, [
        ...['--input-type=module', '-e', main, ...args],
        ...['--save-proof', folder.file(`${n}.proof`)],
      ]);
      const [code] = await once(child, 'exit');
      return code;
    });
    expect(await Promise.all(ended)).toEqual([0, 0]);
    expect((await runsIn()).toSorted()).toEqual(['run-0', 'run-1', 'run-2']);
    const sizes = [1, 2].map(
      (n) => readFileSync(folder.file(`${n}.proof`), 'utf8').split(`${ORIGIN}\n`)[1]?.[0],
    );
    expect(sizes.toSorted()).toEqual(['2', '3']);
  });

  it('exclude each other, until one ends, however it ends', async () => {
    const path = folder.file('.lock');
    const script = `import { lockFile } from ${JSON.stringify(join(import.meta.dirname, 'lock.ts'))};
      globalThis.held = lockFile(${JSON.stringify(path)}); console.log('locked'); setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script]);
    await once(child.stdout, 'data');
    expect(() => lockFile(path, 1)).toThrow('another process has');
    child.kill('SIGKILL');
    await once(child, 'exit');
    lockFile(path, 1)[Symbol.dispose]();
  });
});

describe('a folder that is not what the log signed', () => {
  let older: Buffer;
  beforeEach(async () => {
    await publishAll(log, [0]);
    older = readFileSync(join(log, 'checkpoint'));
    await publishAll(log, [1, 2]);
  });

  const publishNext = () => publishTo(log, signedReport(9));
  const change = (path: string, edit: (text: Buffer) => Buffer): void =>
    writeFileSync(join(log, path), edit(readFileSync(join(log, path))));
  const entriesOf = (...numbers: number[]) => toBundle(numbers.map((n) => entryOf(n)));

  it.each<[string, RegExp, () => void]>([
    [
      'an entry that was changed',
      /was changed or removed/,
      () => change('tile/entries/000.p/3', () => entriesOf(0, 7, 2)),
    ],
    ['an entry that was removed', /cut short/, () => change('tile/entries/000.p/3', () => entriesOf(0, 2))],
    [
      'no entries',
      /has no tile\/entries\/000.p\/3/,
      () => rmSync(join(log, 'tile/entries'), { recursive: true }),
    ],
    [
      'a tile that was changed',
      /tile\/0\/000.p\/3 has other content/,
      () => change('tile/0/000.p/3', (tile) => tile.fill((tile[0] ?? 0) ^ 1, 0, 1)),
    ],
    [
      'an older checkpoint',
      /more entries than its checkpoint says/,
      () => writeFileSync(join(log, 'checkpoint'), older),
    ],
    ['no checkpoint', /more entries than its checkpoint says/, () => rmSync(join(log, 'checkpoint'))],
    ['an empty checkpoint', /not a signed note/, () => change('checkpoint', () => Buffer.alloc(0))],
    [
      'a next entry that nobody signed',
      /does not continue|wrong entry/,
      () =>
        writeFileSync(
          join(log, 'tile/entries/000.p/4'),
          Buffer.concat([entriesOf(0, 1, 2), Buffer.of(0, 2, 0x7b, 0x7d)]),
        ),
    ],
    [
      'a next bundle that begins with other entries',
      /does not continue the log/,
      () => writeFileSync(join(log, 'tile/entries/000.p/4'), entriesOf(0, 2, 1, 4)),
    ],
  ])('with %s is refused, and nothing is signed', async (_what, why, spoil) => {
    spoil();
    const before = filesOf(log).map((path) => [path, readFileSync(join(log, path))]);
    await expect(publishNext()).rejects.toThrow(why);
    expect(filesOf(log).map((path) => [path, readFileSync(join(log, path))])).toEqual(before);
  });

  it('with a tile that was lost gets it back', async () => {
    const lost = join(log, 'tile/0/000.p/3');
    const was = readFileSync(lost);
    rmSync(lost);
    await publishNext();
    expect(readFileSync(lost)).toEqual(was);
    expect(await runsIn()).toHaveLength(4);
  });

  it('with the checkpoint before the last entry gives the last checkpoint again', async () => {
    const before = readFileSync(join(log, 'checkpoint'));
    const { checkpoint } = await publishTo(log, signedReport(3));
    writeFileSync(join(log, 'checkpoint'), before);
    expect(await publishTo(log, signedReport(3))).toMatchObject({ isNew: false, checkpoint });
    expect((await open()).checkpoint).toEqual(checkpoint);
  });
});

describe('a disk that refuses', () => {
  const refusing = (code: string): LogDisk =>
    new LogDisk(log, {
      fs: {
        ...nodeFs,
        writeSync: () => {
          throw Object.assign(new Error(code), { code });
        },
      } as unknown as FileSystem,
    });

  it.each([
    ['ENOSPC', 'the disk is full'],
    ['EROFS', 'the disk is read-only'],
    ['EDQUOT', 'the disk quota is used up'],
  ])('with %s is named, and the log stays as it was', async (code, why) => {
    await publishAll(log, [0]);
    await expect(publishTo(log, signedReport(1), { disk: refusing(code) })).rejects.toThrow(why);
    expect(await runsIn()).toEqual(['run-0']);
    await publishTo(log, signedReport(1));
    expect(await runsIn()).toEqual(['run-0', 'run-1']);
  });

  it('as a path through a file, or a folder that may not be written, is named', async () => {
    writeFileSync(folder.file('file'), '');
    await expect(publishTo(folder.file('file/log'), signedReport(0))).rejects.toThrow(/could not be written/);
    mkdirSync(log);
    chmodSync(log, 0o555);
    await asOrdinaryUser(() => expect(publishTo(log, signedReport(0))).rejects.toThrow('cannot be locked'));
    await expect(publishTo('/proc/log', signedReport(0))).rejects.toThrow(/\/proc\/log could not be written/);
  });
});
