import { afterEach, expect, it, vi } from 'vitest';
import { until } from '../../../../test/support/time/until.ts';
import { VirtualClock } from '../../../../test/support/time/virtual-clock.ts';
import { machineSpec, observe } from '../simulator.fixture.ts';
import { createSimulator } from './simulator.ts';
import { type SimulatedMachine, SimulatorState } from './state.ts';

afterEach(() => vi.restoreAllMocks());

type Change = (before: SimulatedMachine | undefined, after: SimulatedMachine | undefined) => boolean;

/** Makes the state file reject each change of a machine that `matches`, as on a full disk, until `end`. */
function fillDisk(matches: Change): { refused: () => number; linesDone: () => number; end(): void } {
  const { machine } = SimulatorState.prototype;
  let refused = 0;
  let linesDone = 0;
  let isFull = true;
  const spy = vi.spyOn(SimulatorState.prototype, 'machine');
  spy.mockImplementation(function (this: SimulatorState, before, after) {
    if (!isFull || !matches(before, after)) {
      machine.call(this, before, after);
      linesDone = after?.runcmdDone ?? 0;
      return;
    }
    refused++;
    throw new Error('database or disk is full');
  });
  return {
    refused: () => refused,
    linesDone: () => linesDone,
    end: () => {
      isFull = false;
    },
  };
}

it.each<[string, Change]>([
  ['the end of a boot', (before) => before?.power === 'building'],
  ['a line of the first boot', (before, after) => before?.runcmdDone !== after?.runcmdDone],
])('resumes by itself after its disk was too full for %s [simulator-full-disk]', async (_what, matches) => {
  const clock = new VirtualClock();
  const capacity = [{ offerId: 'h100', datacenter: 'fra', units: 1, spot: false }];
  const platform = { bootMs: [2000, 2000] as [number, number] };
  const driver = await createSimulator({ stateFile: ':memory:', capacity, platform }, clock);
  const failed = vi.fn();
  process.on('unhandledRejection', failed);
  try {
    await driver.create(machineSpec({ cloudInit: { runcmd: ['echo first', 'echo second'] } }), null);
    const disk = fillDisk(matches);
    await clock.advance(2000);
    await until('a write is refused', () => disk.refused() > 0);
    for (let tries = 0; tries < 3; tries++) await clock.advance(60_000);
    disk.end();
    await until('the first boot has run', async () => {
      await clock.advance(60_000);
      return disk.linesDone() === 2;
    });
    expect((await observe(driver, 'berth-1')).endpoint?.sshPort).toBeGreaterThan(0);
    expect(failed).not.toHaveBeenCalled();
  } finally {
    process.off('unhandledRejection', failed);
    await driver.close();
  }
});
