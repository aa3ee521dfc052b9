import { expect, it } from 'vitest';
import { startPlainOrchestrator } from '../support/plain-orchestrator.ts';

it('K1: a driver that is still at a call for a machine gets no second one for it (no process was paused: the host is slow)', async () => {
  await using berth = await startPlainOrchestrator();
  const { driver } = berth.platform;
  const { stop } = driver;
  let underWay = 0;
  let most = 0;
  driver.stop = async (ref, cookie) => {
    most = Math.max(most, ++underWay);
    // `virsh start` may take 60 s, `virsh destroy` 30 s (create.ts:270, power.ts:135); a call of the core ends after 7.5 s.
    await new Promise<void>((resolve) => void berth.clock.setTimer(25_000, resolve));
    underWay--;
    return stop.call(driver, ref, cookie);
  };
  const id = await berth.create();
  await berth.passUntil(`/instances/${id}`, 'ONLINE');
  await berth.orchestrator.request('POST', `/instances/${id}/stop`);
  await berth.clock.advance(60_000);
  expect(most).toBe(1);
});
