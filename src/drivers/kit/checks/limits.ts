import type { Call, Step } from '../../../orchestrator/model/platform-driver.ts';
import { nextTurn } from '../../../ports/clock.ts';
import { type Bench, CheckFailure, gone, same, show, TRIAL_ORDER, Untried } from './bench.ts';
import type { DriverCheck } from './check.ts';

/** Time in which a call must settle after its signal aborts, in milliseconds. */
const SETTLES_WITHIN_MS = 30_000;
/** How long the platform is watched after a cancelled call has settled, in milliseconds. */
const WATCHED_MS = 5_000;

/** As long as the mark of a server, with what a shell or a parser may change. */
const MARK = `{"epoch":18014398509481984,"by":"process 7 of ${'h'.repeat(60)}","at":"$(id) 'it' \\"a  b\\" é"}`;

export const limitChecks: readonly DriverCheck[] = [
  {
    id: 'writer-mark',
    title: 'keeps the mark of the writer on the platform, or declares that it cannot',
    why: 'A second server with a copy of the database reads it: without it, both change the same machines.',
    remedy:
      'Keep the text of each key on the platform, byte for byte, where every server sees it; or say writer_mark: false.',
    async run({ driver: { writer }, manifest, context }) {
      same('whether it keeps the mark', writer !== undefined, manifest.marksWriter === true);
      if (writer === undefined) return;
      const key = `${context.prefix ?? 'suite'}-0f1e-default`;
      const kept = async (by = writer): Promise<string[]> => [...new Set(await by.read(key))].filter(Boolean);
      same('the mark before the first', await kept(), []);
      await writer.write(key, 'an earlier one');
      await writer.write(key, MARK);
      await writer.write(`${key}-b`, 'of another Berth');
      same('the mark', await kept(), [MARK]);
      const reopened = await context.reopen?.();
      if (reopened !== undefined) same('the mark, for another process', await kept(reopened.writer), [MARK]);
      await reopened?.close();
      for (const one of [key, `${key}-b`]) await writer.write(one, '');
      same('the mark after its removal', await kept(), []);
    },
  },
  {
    id: 'deadline',
    title: 'starts nothing for a call whose deadline has passed',
    why: 'The server that sent it has given up, and another server may be working on the machine. A late start changes what that server made.',
    remedy: 'Compare expires_at with the clock before each thing that you begin, and fail with transient.',
    async run(bench) {
      const over = () => bench.call({ deadline: bench.context.now() - 1_000 });
      await makesNothing(bench, 'after its deadline', over);
      await changesNothing(bench, 'after its deadline', over);
    },
  },
  {
    id: 'cancel-before',
    title: 'starts nothing for a call that is already aborted',
    why: 'Berth no longer waits for its answer, and does not know what it makes.',
    remedy: 'Begin nothing of a request that was cancelled.',
    async run(bench) {
      const aborted = () => bench.call({ signal: AbortSignal.abort() });
      await makesNothing(bench, 'after its signal', aborted);
      await changesNothing(bench, 'after its signal', aborted);
    },
  },
  {
    id: 'cancel',
    title: 'settles an aborted create, and makes nothing after it has settled',
    why: 'Berth starts the next call on a machine when this one has settled: a call that never settles blocks the machine, and one that keeps working conflicts with the next.',
    remedy:
      'When a request is cancelled, stop its work, begin nothing more, and answer it; over HTTP, when its connection is closed.',
    async run(bench) {
      const ref = bench.ref('a');
      const controller = new AbortController();
      const call = bench.call({ signal: controller.signal });
      let isSettled = false;
      const settle = (): void => {
        isSettled = true;
      };
      bench.driver.create(bench.spec(ref), null, call).then(settle, settle);
      await nextTurn();
      controller.abort();
      for (let waitedMs = 0; !isSettled; waitedMs += 100) {
        if (waitedMs >= SETTLES_WITHIN_MS)
          throw new CheckFailure(
            `create has not ended ${SETTLES_WITHIN_MS / 1000} s after the signal of its call was aborted`,
          );
        await bench.context.wait(100);
      }
      const isGone = async (): Promise<boolean> => (await bench.driver.get(ref)).answer === 'gone';
      if (!(await isGone())) return undefined;
      await bench.context.wait(bench.manifest.createVisibleWithinMs);
      if (!(await isGone())) return undefined;
      await bench.context.wait(WATCHED_MS);
      if (!(await isGone()))
        throw new CheckFailure('create settled without a machine, and made one afterwards');
    },
  },
  {
    id: 'fence',
    title: 'rejects a call of an earlier claim, and changes nothing',
    why: 'A server that was suspended for minutes resumes and sends its old call. It has lost its claim, and another server is changing the machine.',
    remedy:
      'Keep the highest fence of each ref where the change happens, and refuse a lower one in the same step; or say fences: false.',
    async run(bench) {
      if (!bench.fences) throw new Untried('the manifest says that it does not compare fences');
      const early = bench.call();
      await changesNothing(bench, 'of an earlier claim', () => early);
    },
  },
];

async function makesNothing(bench: Bench, when: string, forbidden: () => Call): Promise<void> {
  const { driver } = bench;
  const ref = bench.ref('none');
  await notBegun(`create ${when}`, () => driver.create(bench.spec(ref), null, forbidden()));
  gone(`get after a create ${when}`, await driver.get(ref));
  const { volumes } = driver;
  if (volumes === undefined) return;
  const volume = bench.volumeRef('no-volume');
  const spec = bench.context.volumeSpec(volume);
  await notBegun(`volumes.create ${when}`, () => volumes.create(spec, null, forbidden()));
  gone(`volumes.get after a create ${when}`, await volumes.get(volume));
}

async function changesNothing(bench: Bench, when: string, forbidden: () => Call): Promise<void> {
  const { driver, manifest } = bench;
  const ref = bench.ref('a');
  await bench.create(ref);
  const before = await driver.get(ref);
  if (manifest.stop) await notBegun(`stop ${when}`, () => driver.stop(ref, null, forbidden()));
  await notBegun(`destroy ${when}`, () => driver.destroy(ref, null, TRIAL_ORDER, forbidden()));
  same(`get after a destroy ${when}`, await driver.get(ref), before);
  const { volumes } = driver;
  if (volumes === undefined) return;
  const volume = bench.volumeRef('v');
  await bench.createVolume(volumes, volume);
  const kept = await volumes.get(volume);
  await notBegun(`volumes.destroy ${when}`, () => volumes.destroy(volume, null, TRIAL_ORDER, forbidden()));
  same(`volumes.get after a destroy ${when}`, await volumes.get(volume), kept);
}

/** @throws {CheckFailure} if the step is pending or done */
async function notBegun(what: string, call: () => Promise<Step<unknown>>): Promise<void> {
  const step = await call().catch(() => undefined);
  if (step !== undefined && step.outcome !== 'failed')
    throw new CheckFailure(`${what}: expected it to fail, got ${show(step)}`);
}
