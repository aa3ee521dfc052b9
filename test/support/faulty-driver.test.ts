import { describe, expect, it } from 'vitest';
import type { PlatformDriver } from '../../src/orchestrator/model/platform-driver.ts';
import { type Fault, InjectedFault } from '../../src/platform-model/call-faults.ts';
import { withFaults } from './faulty-driver.ts';
import { anOrder } from './rows/orchestrator-rows.ts';
import { VirtualClock } from './time/virtual-clock.ts';

/** A platform with one machine that records the calls that reach it. */
function countingDriver(): PlatformDriver & { reached: string[] } {
  const reached: string[] = [];
  const machine = { ref: 'a', power: 'running', createdAt: 0 } as const;
  const step = async (name: string) => {
    reached.push(name);
    return { outcome: 'done', value: machine } as const;
  };
  return {
    reached,
    manifest: {
      name: 'counting',
      stop: true,
      resume: true,
      restart: true,
      attachVolume: 'none',
      resizeVolume: 'none',
      createVisibleWithinMs: 0,
      keepsNotes: false,
      cloudInitBytes: 0,
    },
    get: async () => {
      reached.push('get');
      return { answer: 'observed', value: machine };
    },
    list: async () => {
      reached.push('list');
      return { answer: 'listed', items: [machine] };
    },
    create: () => step('create'),
    stop: () => step('stop'),
    start: () => step('start'),
    restart: () => step('restart'),
    destroy: async () => {
      reached.push('destroy');
      return { outcome: 'done', value: null };
    },
    close: async () => void reached.push('close'),
  };
}

function faulty(fault: Fault, clock = new VirtualClock(1_000)) {
  const platform = countingDriver();
  return { driver: withFaults(platform, () => fault, clock), reached: platform.reached, clock };
}

describe('injected faults', () => {
  it('passes a call through and records it', async () => {
    const { driver, reached } = faulty('none');
    expect(await driver.stop('a', null)).toMatchObject({ outcome: 'done' });
    expect(reached).toEqual(['stop']);
    expect(driver.calls).toEqual([{ method: 'stop', ref: 'a' }]);
  });

  it('fails before the platform is reached', async () => {
    const { driver, reached } = faulty('fail-before');
    await expect(driver.stop('a', null)).rejects.toThrow(InjectedFault);
    expect(reached).toEqual([]);
  });

  it('loses the answer after the platform has done the work', async () => {
    const { driver, reached } = faulty('fail-after');
    await expect(driver.stop('a', null)).rejects.toThrow(InjectedFault);
    expect(reached).toEqual(['stop']);
  });

  it('hangs until released, then reaches the platform late', async () => {
    const { driver, reached } = faulty('hang');
    const call = driver.destroy('a', null, anOrder);
    await new Promise((resolve) => setImmediate(resolve));
    expect(reached).toEqual([]);
    driver.release();
    expect(await call).toEqual({ outcome: 'done', value: null });
    expect(reached).toEqual(['destroy']);
  });

  it('rejects hanging calls when it is closed', async () => {
    const { driver, reached } = faulty('hang');
    const call = driver.get('a');
    await driver.close();
    await expect(call).rejects.toThrow('closed');
    expect(reached).toEqual(['close']);
  });

  it('answers unknown, an empty listing or a false done', async () => {
    expect(await faulty('unknown').driver.get('a')).toMatchObject({ answer: 'unknown' });
    expect(await faulty('unknown').driver.list()).toMatchObject({ answer: 'unknown' });
    expect(await faulty('lie-empty').driver.list()).toEqual({ answer: 'listed', items: [] });
    const { driver, reached } = faulty('lie-done');
    expect(await driver.destroy('a', null, anOrder)).toEqual({ outcome: 'done', value: null });
    expect(reached).toEqual([]);
  });

  it('delays the answer until after the work is done', async () => {
    const { driver, reached, clock } = faulty({ kind: 'delay', ms: 500 });
    const answers: unknown[] = [];
    void driver.stop('a', null).then((step) => answers.push(step.outcome));
    await clock.advance(499);
    expect([reached, answers]).toEqual([['stop'], []]);
    await clock.advance(1);
    expect([answers, clock.pendingTimers]).toEqual([['done'], 0]);
  });

  it('delivers a call late', async () => {
    const { driver, reached, clock } = faulty({ kind: 'late', ms: 500 });
    const call = driver.stop('a', null);
    await clock.advance(499);
    expect(reached).toEqual([]);
    await clock.advance(1);
    expect(await call).toMatchObject({ outcome: 'done' });
    expect(reached).toEqual(['stop']);
  });

  it('delivers no late call once it is closed', async () => {
    const { driver, reached, clock } = faulty({ kind: 'late', ms: 500 });
    const call = driver.stop('a', null);
    await clock.advance(100);
    await driver.close();
    await expect(call).rejects.toThrow('closed');
    expect([reached, clock.pendingTimers]).toEqual([['close'], 0]);
  });

  it('shortens a listing, and leaves out young machines', async () => {
    const listed = async (fault: Fault, clock?: VirtualClock): Promise<unknown> => {
      const listing = await faulty(fault, clock).driver.list();
      return listing.answer === 'listed' ? listing.items.length : listing;
    };
    expect(await listed({ kind: 'part', items: 0 })).toBe(0);
    expect(await listed({ kind: 'part', items: 1 })).toBe(1);
    expect(await listed({ kind: 'lag', ms: 1_000 })).toBe(1);
    expect(await listed({ kind: 'lag', ms: 1_001 })).toBe(0);
  });

  it.each([true, false])('claims a failure of a step, done: %s', async (isDone) => {
    const fault = { kind: 'misclaim', code: 'capacity', sideEffect: 'none', isDone } as const;
    const { driver, reached } = faulty(fault);
    expect(await driver.stop('a', null)).toMatchObject({
      outcome: 'failed',
      code: 'capacity',
      sideEffect: 'none',
    });
    expect(reached).toEqual(isDone ? ['stop'] : []);
  });

  it.each<Fault>(['lie-empty', { kind: 'part', items: 1 }, { kind: 'lag', ms: 1 }])(
    'refuses a fault that does not fit the call: %j',
    async (fault) => {
      await expect(faulty(fault).driver.get('a')).rejects.toThrow(TypeError);
    },
  );
});
