import { describe, expect, it } from 'vitest';
import { intent } from '../../../test/support/rows/marketplace-rows.ts';
import type { Instance, InstanceStatus } from '../../contract/instance.ts';
import { instanceTypes } from '../contract/values.ts';
import type { DeploymentIntent, DeploymentRecord } from '../model/deployment-record.ts';
import {
  actionKinds,
  instanceOf,
  iso,
  judgeAt,
  polling,
  read,
  recordOf,
  start,
  statuses,
} from './observe.fixture.ts';
import { type Judgement, needsList, type Observation } from './observe.ts';

const now = start + 20_000;
const outcomeOf = (judgement: Judgement) => (judgement.kind === 'change' ? judgement.to : judgement.kind);

type Row = { other: string } & Partial<Record<'SPOT' | 'volume' | DeploymentIntent['kind'], string>>;
const gone: Row = { other: 'suspect', SPOT: 'terminated-provider' };
const lost: Row = { other: 'suspect', SPOT: 'failed' };
/** The judgement of an observation without a history. `SPOT` and sent actions are listed where they differ. */
const table: Record<'deploying' | 'running' | 'stopped', Record<InstanceStatus, Row>> = {
  deploying: {
    PROVISIONING: { other: 'confirm' },
    ONLINE: { other: 'running' },
    STOPPING: { other: 'hold' },
    STOPPED: { other: 'hold' },
    OFFLINE: lost,
    DESTROYING: lost,
    DESTROYED: { other: 'failed' },
    ERROR: { other: 'failed' },
  },
  running: {
    PROVISIONING: { other: 'hold' },
    ONLINE: { other: 'confirm' },
    STOPPING: { other: 'suspect', SPOT: 'hold', pause: 'confirm', restart: 'hold', volume: 'hold' },
    STOPPED: { other: 'suspect', SPOT: 'stopped', pause: 'stopped', restart: 'hold', volume: 'hold' },
    OFFLINE: gone,
    DESTROYING: gone,
    DESTROYED: { other: 'terminated-provider' },
    ERROR: { other: 'failed' },
  },
  stopped: {
    PROVISIONING: { other: 'hold' },
    ONLINE: { other: 'running' },
    STOPPING: { other: 'hold' },
    STOPPED: { other: 'confirm' },
    OFFLINE: gone,
    DESTROYING: gone,
    DESTROYED: { other: 'terminated-provider' },
    ERROR: { other: 'failed' },
  },
};

const cases = (['deploying', 'running', 'stopped'] as const).flatMap((status) =>
  statuses.flatMap((reported) =>
    instanceTypes.flatMap((instanceType) =>
      [null, 'volume' as const, ...actionKinds].flatMap((kind) =>
        (kind === null ? [false] : [true, false]).map((isSent) => {
          const row = table[status][reported];
          const ofType = (instanceType === 'SPOT' ? row.SPOT : undefined) ?? row.other;
          const expected = (isSent && kind !== null ? row[kind] : undefined) ?? ofType;
          return { status, instanceType, reported, action: kind, isSent, expected };
        }),
      ),
    ),
  ),
);

describe('the effect of an observation', () => {
  it.each(cases)(
    'a $status $instanceType that reads $reported (action $action, sent $isSent): $expected [observation-table]',
    (it) => {
      const isVolumeChanging = it.action === 'volume' && it.isSent;
      const kind = it.action === 'volume' ? null : it.action;
      const action = kind === null ? null : intent(kind, { since: start, attempt: it.isSent ? 1 : 0 });
      const record = recordOf(it.status, { instanceType: it.instanceType, action });
      const observation = { instance: instanceOf(it.reported), isVolumeChanging };
      expect(outcomeOf(judgeAt(record, observation, now))).toBe(it.expected);
    },
  );

  it('is the requested stop, also while a volume is being attached or detached', () => {
    const record = recordOf('running', { action: intent('pause', { since: start }) });
    const observation = { instance: instanceOf('STOPPED'), isVolumeChanging: true };
    expect(outcomeOf(judgeAt(record, observation, now))).toBe('stopped');
  });

  it.each(['failed', 'terminated', 'terminated-provider'] as const)(
    'does not change a deployment that is %s',
    (status) => {
      for (const reported of statuses)
        expect(judgeAt(recordOf(status), { instance: instanceOf(reported) }, now).kind).toBe('hold');
      expect(judgeAt(recordOf(status), { gone: true, isListed: false }, now).kind).toBe('hold');
    },
  );

  it('a change counts from the time that the provider reports, between the last confirmation and now', () => {
    const record = recordOf('running', { instanceType: 'SPOT', observedAt: start + 10_000 });
    const at = (updatedAt: number) => {
      const observation = { instance: instanceOf('STOPPED', { updated_at: iso(updatedAt) }) };
      const judgement = judgeAt(record, observation, now);
      return judgement.kind === 'change' ? judgement.at - start : null;
    };
    expect([at(start + 15_000), at(start), at(start + 99_000)]).toEqual([15_000, 10_000, 20_000]);
  });

  it('billing starts with the observation, regardless of the past that the provider reports', () => {
    const judgement = judgeAt(recordOf('deploying'), { instance: instanceOf('ONLINE') }, now);
    expect(judgement).toMatchObject({
      to: 'running',
      at: now,
      facts: { endpoint: { ipAddress: '192.0.2.1' } },
    });
  });

  it('counts a change made while the answer was in transit [change-while-answering]', () => {
    const [reported, seenAt] = [start + 21_000, start + 22_000];
    const observation = { instance: instanceOf('STOPPED', { updated_at: iso(reported) }) };
    const paused = recordOf('running', { action: intent('pause', { since: start }) });
    expect(judgeAt(paused, observation, now, seenAt)).toMatchObject({ at: reported });
    const online = { instance: instanceOf('ONLINE', { updated_at: iso(reported) }) };
    expect(judgeAt(recordOf('deploying'), online, now, seenAt)).toMatchObject({
      at: seenAt,
    });
  });

  it('an instance with another id is ignored', () => {
    const observation = { instance: instanceOf('DESTROYED', { id: 'another' }) };
    expect(judgeAt(recordOf('running'), observation, now).kind).toBe('hold');
  });

  it('an error shows the reason to the user, on one line [error-told-on-one-line]', () => {
    const instance = instanceOf('ERROR', { error: 'no\nluck\u202e' });
    expect(judgeAt(recordOf('deploying'), { instance }, now)).toMatchObject({
      failure: { reason: 'provisioning_failed', details: 'no luck' },
    });
    expect(judgeAt(recordOf('running'), { instance }, now)).toMatchObject({
      failure: { reason: 'runtime_failure' },
    });
  });
});

/** Judges observations one after the other, and updates the record as the worker would. */
function follow(record: DeploymentRecord, looks: readonly (readonly [number, Observation])[]) {
  let current = record;
  return looks.map(([ms, observation]) => {
    const judgement = judgeAt(current, observation, start + ms);
    if (judgement.kind === 'suspect') current = { ...current, suspicion: judgement.suspicion };
    if (judgement.kind === 'confirm') current = { ...current, suspicion: null, observedAt: start + ms };
    return judgement.kind === 'change' ? `${judgement.to} from ${judgement.at - start}` : judgement.kind;
  });
}

describe('a dedicated instance', () => {
  it('that blinks stays alive [blink-ignored]', () => {
    const looks = [
      [20_000, read('STOPPED', 15_000)],
      [40_000, read('OFFLINE', 30_000)],
      [199_000, read('OFFLINE', 30_000)],
      [205_000, read('ONLINE', 200_000)],
    ] as const;
    expect(follow(recordOf('running'), looks)).toEqual(['suspect', 'suspect', 'suspect', 'confirm']);
  });

  it('that stays stopped is stopped, from when that was first so [stop-counts-from-first-sight]', () => {
    const looks = [
      [20_000, read('STOPPING', 15_000)],
      [40_000, read('STOPPED', 30_000)],
      [199_999, read('STOPPED', 30_000)],
      [200_000, read('STOPPED', 30_000)],
    ] as const;
    expect(follow(recordOf('running'), looks)).toEqual([
      'suspect',
      'suspect',
      'suspect',
      'stopped from 20000',
    ]);
  });

  it('that is STOPPING for ever is not stopped', () => {
    const looks = [20_000, 300_000, 900_000].map((ms) => [ms, read('STOPPING', 15_000)] as const);
    expect(follow(recordOf('running'), looks)).toEqual(['suspect', 'suspect', 'suspect']);
  });

  it.each(['OFFLINE', 'DESTROYING'] as const)('that stays %s is gone', (status) => {
    const looks = [20_000, 190_000, 200_000].map((ms) => [ms, read(status, 15_000)] as const);
    expect(follow(recordOf('stopped'), looks)).toEqual([
      'suspect',
      'suspect',
      'terminated-provider from 15000',
    ]);
  });
});

describe('a 404', () => {
  const not: Observation = { gone: true };
  const unlisted: Observation = { gone: true, isListed: false };

  it('is final when a second poll and the list say so, from the last confirmation on', () => {
    expect(
      follow(recordOf('running'), [
        [10_000, read('ONLINE')],
        [30_000, not],
        [45_000, unlisted],
      ]),
    ).toEqual(['confirm', 'suspect', 'terminated-provider from 10000']);
  });

  it('changes nothing after one poll, after two polls too close together, or without the list [not-found-taken-back]', () => {
    expect(
      follow(recordOf('running'), [
        [10_000, unlisted],
        [19_999, unlisted],
        [40_000, not],
      ]),
    ).toEqual(['suspect', 'suspect', 'suspect']);
  });

  it('that the list contradicts restarts the count [not-found-but-listed]', () => {
    const listed: Observation = { gone: true, isListed: true };
    const looks = [
      [10_000, not],
      [30_000, listed],
      [35_000, unlisted],
      [41_000, unlisted],
    ] as const;
    expect(follow(recordOf('running'), looks)).toEqual([
      'suspect',
      'suspect',
      'suspect',
      'terminated-provider from 0',
    ]);
  });

  it('for an instance being provisioned fails its deployment, but not while the list may lag behind', () => {
    const looks = [
      [10_000, not],
      [30_000, unlisted],
      [179_000, unlisted],
      [180_000, unlisted],
    ] as const;
    expect(follow(recordOf('deploying'), looks)).toEqual(['suspect', 'suspect', 'suspect', 'failed from 0']);
  });

  it('needs the list only when the list would decide', () => {
    const suspicion = { status: 'GONE', since: start, polls: 1 } as const;
    expect(needsList(recordOf('running'), now, polling)).toBe(false);
    expect(needsList(recordOf('running', { suspicion }), start + 9_999, polling)).toBe(false);
    expect(needsList(recordOf('running', { suspicion }), start + 10_000, polling)).toBe(true);
  });
});

describe('the details that an instance reports', () => {
  const factsOf = (record: DeploymentRecord, changes: Partial<Instance>) =>
    judgeAt(record, { instance: instanceOf('ONLINE', changes) }, now);

  it.each([undefined, '', 'not an address!', '-x.example', '192.0.2.1; rm -rf /'])(
    'an address %j is none: nothing follows from ONLINE [address-malformed]',
    (address) => {
      const { public_ip: _, ...instance } = instanceOf('ONLINE');
      const reported = { ...instance, ...(address !== undefined && { public_ip: address }) };
      expect(judgeAt(recordOf('deploying'), { instance: reported }, now).kind).toBe('hold');
    },
  );

  it('an unchanged endpoint is not a change, a different one is', () => {
    expect(factsOf(recordOf('running'), {})).toEqual({ kind: 'confirm', facts: {} });
    expect(
      factsOf(recordOf('running'), { public_ip: 'node-1.example', ssh_username: '$(reboot)' }),
    ).toMatchObject({
      facts: { endpoint: { ipAddress: 'node-1.example', loginUser: null, sshPort: 22 } },
    });
  });

  it('a login user that one answer leaves out is kept, an invalid one is dropped', () => {
    const known = recordOf('running', { loginUser: 'ubuntu' });
    const { ssh_username: _, ...without } = instanceOf('ONLINE');
    expect(judgeAt(known, { instance: without }, now)).toEqual({ kind: 'confirm', facts: {} });
    expect(factsOf(known, { ssh_username: '$(reboot)' })).toMatchObject({
      facts: { endpoint: { loginUser: null } },
    });
  });

  it('the port is its own, else the one that leads to 22, else 22 [ssh-port-of-an-instance]', () => {
    const forwards = { port_forwards: [{ internal_port: 22, external_port: 30_022 }] };
    const { ssh_port: _, ...instance } = instanceOf('ONLINE', forwards);
    const port = (reported: Instance) => {
      const judgement = judgeAt(recordOf('deploying'), { instance: reported }, now);
      return judgement.kind === 'change' && judgement.facts.endpoint?.sshPort;
    };
    expect([
      port(instance),
      port({ ...instance, ssh_port: 2_222 }),
      port({ ...instance, port_forwards: [] }),
    ]).toEqual([30_022, 2_222, 22]);
  });

  it('a spot price changes, unless it is implausible; any other price stays', () => {
    const spot = recordOf('running', { instanceType: 'SPOT' });
    expect(factsOf(spot, { price_per_hour: 3 })).toMatchObject({
      facts: { providerRateMicroUsd: 3_000_000 },
    });
    expect(factsOf(spot, { price_per_hour: 2 })).toEqual({ kind: 'confirm', facts: {} });
    for (const price of [-1, Number.NaN, Number.POSITIVE_INFINITY, 20.1]) {
      const judgement = factsOf(spot, { price_per_hour: price });
      expect(judgement).toMatchObject({ kind: 'confirm', facts: {} });
      expect(judgement).toHaveProperty('why');
    }
    expect(factsOf(recordOf('running'), { price_per_hour: 3 })).toEqual({ kind: 'confirm', facts: {} });
  });
});
