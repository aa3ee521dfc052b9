import { afterEach, beforeEach, expect, it } from 'vitest';
import { startPlainOrchestrator } from '../support/plain-orchestrator.ts';

const MINUTE_MS = 60_000;

let berth: Awaited<ReturnType<typeof startPlainOrchestrator>>;
/** For as long as the platform shows nothing of this one: an operator is moving it (see race-moved.test.ts). */
let hidden: string | undefined;

beforeEach(async () => {
  hidden = undefined;
  berth = await startPlainOrchestrator();
  const { driver } = berth.platform;
  const { get, list, destroy } = driver;
  driver.get = async (ref) => (ref === hidden ? { answer: 'gone' } : get.call(driver, ref));
  driver.list = async () => {
    const listing = await list.call(driver);
    if (listing.answer !== 'listed') return listing;
    return { ...listing, items: listing.items.filter(({ ref }) => ref !== hidden) };
  };
  driver.destroy = async (ref, cookie, order) =>
    ref === hidden ? { outcome: 'done', value: null } : destroy.call(driver, ref, cookie, order);
});
afterEach(() => berth[Symbol.asyncDispose]());

it.each(['STOPPED', 'ONLINE'])(
  'C1: the clean-up of an %s instance that counts as lost does not destroy its machine when that is there again: its end was not requested',
  async (status) => {
    const { clock, orchestrator, platform } = berth;
    // Others, so that one that is missing is no suspicion.
    for (let n = 0; n < 3; n++) await berth.passUntil(`/instances/${await berth.create()}`, 'ONLINE');
    const id = await berth.create();
    const path = `/instances/${id}`;
    await berth.passUntil(path, 'ONLINE');
    if (status === 'STOPPED') {
      await orchestrator.request('POST', `${path}/stop`);
      await berth.passUntil(path, 'STOPPED');
    }
    await clock.advance(MINUTE_MS);
    const ref = `berth-${id}`;
    hidden = ref;
    for (let waited = 0; (await berth.read(path))['status'] === status && waited < 600; waited++)
      await clock.advance(10);
    // Its state is final for its client. The machine has its name again at this moment.
    hidden = undefined;
    await clock.advance(5 * MINUTE_MS);
    // Decision 11: "one whose instance ended because the platform had lost it: nobody asked for its end, and its disk may be
    // wanted … by default they are only logged".
    expect({ status: (await berth.read(path))['status'], isThere: platform.machines.has(ref) }).toMatchObject(
      {
        isThere: true,
      },
    );
  },
);
