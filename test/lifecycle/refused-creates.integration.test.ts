import { describe, expect, it } from 'vitest';
import { fromStep } from '../../src/drivers/exec/translate.ts';
import * as incus from '../../src/drivers/incus/errors.ts';
import * as libvirt from '../../src/drivers/libvirt/errors.ts';
import * as openstack from '../../src/drivers/openstack/errors.ts';
import type { MachineSpec, PlatformDriver, Step } from '../../src/orchestrator/model/platform-driver.ts';
import { uncordon } from '../../src/orchestrator/operate/actions/cordons.ts';
import { isOfHost } from '../../src/orchestrator/steps/refusals.ts';
import { type Failure, failed } from '../../src/platform-model/steps.ts';
import { openSqliteStore } from '../../src/store/sqlite/store.ts';
import { LISTED_MS, startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { startOn } from '../support/restored.ts';
import { instanceRequest } from '../support/rows/requests.ts';
import { actor } from './operator-actions.fixture.ts';
import { inZones, OFFER, REGION } from './zones.fixture.ts';

const MINUTE_MS = 60_000;
const READ_ONLY = 'Read-only file system';
const EROFS = `cannot create /pool/berth-x: ${READ_ONLY}`;
const ENOSPC = 'cannot create /pool/berth-x: No space left on device';
type Answer = (spec: MachineSpec) => Failure | undefined;
const accept: Answer = () => undefined;
/** Each refusal names the machine, as platforms do. */
const refuse =
  (text = READ_ONLY, code: Failure['code'] = 'boot_failed'): Answer =>
  ({ ref }) =>
    failed(code, `${ref}: ${text}`, 'certain');

/** A platform of these zones, or of none. `answer`: what it says to a create, where it is not done. */
async function start(
  zones: readonly string[],
  answer: (host: string, spec: MachineSpec) => Failure | undefined,
  units = 3,
) {
  const placed: string[] = [];
  const wrapDriver = (driver: PlatformDriver): PlatformDriver => {
    const platform = zones.length === 0 ? driver : inZones(driver, zones, { quota: 9, units });
    return {
      ...platform,
      create: async (spec, cookie, call) => {
        const { host = 'platform' } = spec;
        placed.push(host);
        return answer(host, spec) ?? platform.create(spec, cookie, call);
      },
    };
  };
  const berth = await startPlainOrchestrator(() => 'none', {
    wrapDriver,
    reconcile: { watchIntervalMs: 30_000 },
  });
  const { orchestrator, clock } = berth;
  const { store, catalog } = orchestrator;
  const operator = await orchestrator.addOperator('ann');
  await clock.advance(LISTED_MS);
  const body = () => instanceRequest({ configuration_id: OFFER, region: REGION });
  const send = () => orchestrator.request('POST', '/instances', { body: body() });
  return {
    berth,
    placed,
    /** By then the platform is counted again, and the alarms are stored. */
    round: () => clock.advance(45_000),
    body,
    send,
    /** Orders an instance and lets it settle: its status, or that of a reply that refuses it. */
    order: async () => {
      const reply = await send();
      if (reply.status !== 201) return reply.status;
      await clock.advance(LISTED_MS);
      return (await berth.read(`/instances/${reply.body['id']}`))['status'];
    },
    alarms: async () => {
      const open = await store.read.alarms.list();
      return open.flatMap(({ kind, subject }) => (kind === 'creates_refused' ? [subject] : []));
    },
    capacity: async () => {
      const { body } = await orchestrator.operate<{ placements: Record<string, unknown>[] }>(
        operator,
        '/capacity',
      );
      return body.placements.find(({ offer, region }) => offer === OFFER && region === REGION);
    },
    uncordon: (kind: 'host' | 'offer', name: string) => {
      const sold = { catalog, platforms: new Map([['default', { placesOnHosts: true }]]) };
      return uncordon.perform({ store, clock, sold }, actor, { kind, name });
    },
  };
}

describe('a host that refuses creates alike [creates-refused]', () => {
  it.each<[string, string[], Answer, string]>([
    ['with an error, so that each is tried again', ['az1'], refuse(READ_ONLY, 'internal'), 'az1'],
    [
      'after it began, for lack of room that its count has',
      ['az1'],
      refuse('no space left', 'capacity'),
      'az1',
    ],
    ['which the platform names', [], () => ({ ...failed('internal', READ_ONLY), host: 'kvm-1' }), 'kvm-1'],
  ])('three times in a row %s is out of placement, with an alarm', async (_what, zones, answer, out) => {
    const { berth, send, round, alarms } = await start(zones, (_host, spec) => answer(spec));
    await using _ = berth;
    for (let nth = 0; nth < 3; nth++) await send();
    await round();
    expect(await alarms()).toEqual([`default/${out}`]);
  });

  it.each<[string, string, Step<unknown>]>([
    ['libvirt', EROFS, libvirt.toFailure(new libvirt.VirshError(libvirt.problemOf(EROFS), EROFS))],
    ['libvirt', ENOSPC, libvirt.toFailure(new libvirt.VirshError(libvirt.problemOf(ENOSPC), ENOSPC))],
    ['incus', EROFS, incus.toFailure(new incus.IncusRefusal(500, EROFS, 'POST'))],
    ['incus', ENOSPC, incus.toFailure(new incus.IncusRefusal(500, ENOSPC, 'POST'))],
    ['openstack', EROFS, openstack.toFailure(new openstack.CloudRefusal(500, EROFS))],
    ['openstack', ENOSPC, openstack.toFailure(new openstack.CloudRefusal(500, `No valid host: ${ENOSPC}`))],
    [
      'exec',
      EROFS,
      fromStep({ outcome: 'failed', code: 'internal', side_effect: 'none', detail: EROFS, host: 'n1' }),
    ],
  ])('counts what %s says of %s', (driver, words, step) => {
    expect(step).toMatchObject({
      detail: expect.stringContaining(words),
      ...(driver === 'exec' && { host: 'n1' }),
    });
    expect(isOfHost(step as Failure, { cookie: null })).toBe(true);
  });

  it('is not taken out for other causes, for different ones, or after a success in between', async () => {
    const full: Answer = () => failed('capacity', 'full');
    const invalid = refuse(READ_ONLY, 'invalid');
    const batches: Answer[][] = [
      [invalid, invalid, invalid],
      [full, full, full],
      [refuse(), refuse(), refuse('no bridge')],
      [refuse(), refuse(), accept],
      [refuse(), refuse()],
    ];
    const answers: Answer[] = [];
    const { berth, send, order, round, alarms } = await start(['az1'], (_host, spec) =>
      answers.shift()?.(spec),
    );
    await using _ = berth;
    for (const batch of batches) {
      answers.push(...batch);
      for (const _ of batch) await send();
      await berth.clock.advance(LISTED_MS);
    }
    expect(await order()).toBe('ONLINE');
    await round();
    expect(await alarms()).toEqual([]);
  });

  it('is not sold, on any server, until a trial succeeds or an operator ends it [creates-refused-trial]', async () => {
    const answers: Record<string, Answer> = { az1: refuse(), az2: accept };
    const started = await start(['az1', 'az2'], (host, spec) => answers[host]?.(spec), 1);
    const { berth, placed, order, body, round, capacity, alarms } = started;
    await using _ = berth;
    const { orchestrator, clock } = berth;
    const orderTwice = async () => [await order(), await order()];
    expect(await capacity()).toMatchObject({ platform_units: 2 });
    expect([...(await orderTwice()), await order()]).toEqual(['ERROR', 'ERROR', 'ERROR']);
    // The last count includes its unit, so nothing is sold until the next one.
    expect(await order()).toBe(409);
    await round();
    expect([await alarms(), await capacity()]).toMatchObject([['default/az1'], { platform_units: 1 }]);
    expect(await orderTwice()).toEqual(['ONLINE', 409]);
    await round();
    expect(JSON.stringify(await capacity())).toContain('Limits: az1: it refuses creates: boot_failed: ');
    {
      const store = openSqliteStore(orchestrator.databasePath);
      await using restarted = await clock.advanceUntilSettled(startOn(orchestrator, store), 100);
      await expect(restarted.send('POST', '/instances', body())).rejects.toThrow('capacity_unavailable');
    }
    await clock.advance(4.5 * MINUTE_MS);
    expect(await orderTwice()).toEqual(['ERROR', 409]);
    await clock.advance(5 * MINUTE_MS);
    expect([await order(), await alarms()]).toEqual([409, ['default/az1']]);
    await clock.advance(6 * MINUTE_MS);
    answers['az1'] = accept;
    expect(await order()).toBe('ONLINE');
    await round();
    expect([await alarms(), placed, await capacity()]).toMatchObject([
      [],
      ['az1', 'az1', 'az1', 'az2', 'az1', 'az1'],
      { platform_units: 2 },
    ]);
  });

  it('is the whole offer if the platform names no host: one create of two is the trial [creates-refused-offer]', async () => {
    let answer: Answer = refuse();
    const { berth, order, send, round, alarms, uncordon } = await start([], (_host, spec) => answer(spec));
    await using _ = berth;
    for (let nth = 0; nth < 3; nth++) await order();
    await round();
    expect([await order(), await alarms()]).toEqual([409, [`default/${OFFER}`]]);
    await berth.clock.advance(5 * MINUTE_MS);
    const replies = await Promise.all([send(), send()]);
    expect(replies.map(({ status }) => status).sort()).toEqual([201, 409]);
    await round();
    await uncordon('offer', OFFER);
    answer = accept;
    expect(await order()).toBe('ONLINE');
    await round();
    expect(await alarms()).toEqual([]);
  });
});
