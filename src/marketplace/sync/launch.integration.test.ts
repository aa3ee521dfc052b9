import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ProviderFault } from '../../../test/support/doubles/provider-faults.ts';
import { plainConfigurations } from '../../../test/support/rows/configurations.ts';
import { ProviderError, type ProviderProblem } from '../../client/orchestrator-client.ts';
import type { UnavailableReason } from '../../contract/extensions.ts';
import { toProviderName } from '../model/names.ts';
import { launch } from './launch.ts';
import {
  accept,
  countLines,
  MINUTE_MS,
  openProviderWorkers,
  read,
  type SyncSetup,
  statuses,
} from './sync.fixture.ts';
import { contextOf } from './worker.fixture.ts';

let setup: SyncSetup;
beforeEach(async () => {
  setup = await openProviderWorkers();
});
afterEach(() => setup.close());

function failCreate(fault: ProviderFault): void {
  setup.plain.faults.plan = (method, nth) => (method === 'createInstance' && nth === 1 ? fault : 'none');
}

async function launched(): Promise<string> {
  const id = await accept(setup);
  setup.workers.start();
  await setup.clock.advance(2 * MINUTE_MS);
  return id;
}

describe('the create that is sent to a provider', () => {
  it('is sent once, as requested, with the deployment id as its key, after an availability check', async () => {
    const id = await launched();
    const calls = setup.plain.faults.calls.filter(({ method }) => /create|Availability/.test(method));
    expect(calls.map(({ method }) => method)).toEqual(['listAvailability', 'createInstance']);
    expect(calls[0]?.args).toEqual(['eu-one']);
    expect(calls[1]?.args).toMatchObject([{ name: toProviderName('00c0ffee', id), region: 'eu-one' }, id]);
  });

  it('is not sent while the offer is sold out: the deployment has failed', async () => {
    setup.plain.options.capacity = 0;
    const id = await launched();
    expect(await read(setup, id)).toMatchObject({
      status: 'failed',
      failureReason: 'out_of_stock',
      cleanup: 'none',
      launch: { state: 'over', request: null },
    });
    expect(setup.plain.faults.countOf('createInstance')).toBe(0);
    const [mail] = await setup.store.read.mail.list({ limit: 10 });
    expect(mail?.kind).toBe('deployment_failed');
  });

  it('waits until the availability is known', async () => {
    const error = new ProviderError('failed', '500', { status: 500 });
    setup.plain.faults.plan = (method, nth) =>
      method === 'listAvailability' && nth < 4 ? { error } : 'none';
    expect((await read(setup, await launched())).status).toBe('running');
    expect(setup.plain.faults.countOf('createInstance')).toBe(1);
  });
});

const refusal = (problem: ProviderProblem, status: number, code: string | null = null) =>
  new ProviderError(problem, `POST /instances: ${status}, no`, { status, code, said: 'no' });

it('a create is sent once, even with several senders', async () => {
  const id = await accept(setup);
  const record = await read(setup, id);
  const context = contextOf(setup.deps, setup.provider);
  await Promise.all([launch(context, record), launch(context, record)]);
  expect(setup.plain.faults.countOf('createInstance')).toBe(1);
});

it('a create is not sent by a process that was suspended after it recorded the attempt [launch-after-standstill]', async () => {
  const id = await accept(setup);
  const context = contextOf(setup.deps, setup.provider);
  await launch({ ...context, isLeaseHeld: () => false }, await read(setup, id));
  expect((await read(setup, id)).launch.state).toBe('sent');
  expect(setup.plain.faults.countOf('createInstance')).toBe(0);
});

describe('a create that the provider refuses', () => {
  it.each([
    ['out_of_stock', 'gpu-1 is sold out in eu-one.', refusal('conflict', 409, 'capacity_unavailable')],
    [
      'quota_exceeded',
      'The quota of this marketplace at provider-x is used up.',
      refusal('conflict', 409, 'quota_exceeded'),
    ],
    ['conflict', 'provider-x refused the instance: no', refusal('conflict', 409, 'name_taken')],
    ['invalid_request', 'provider-x refused the instance: no', refusal('refused', 400)],
    [
      'invalid_request',
      'provider-x refused the instance and gave no reason.',
      new ProviderError('refused', 'POST /instances: 418', { status: 418 }),
    ],
    ['unsupported', 'provider-x refused the instance: no', refusal('refused', 400, 'cloud_init_unsupported')],
    [
      'provider_unauthorized',
      "provider-x rejects the marketplace's credentials.",
      refusal('unauthorized', 401),
    ],
    [
      'provider_unauthorized',
      "provider-x rejects the marketplace's credentials.",
      refusal('unauthorized', 403),
    ],
  ] as const)('has failed: %s [launch-refused]', async (failureReason, line, error) => {
    failCreate({ error });
    const id = await launched();
    expect(await read(setup, id)).toMatchObject({
      status: 'failed',
      failureReason,
      failureDetails: line,
    });
    expect(setup.plain.faults.countOf('createInstance')).toBe(1);
    expect(setup.plain.instances).toEqual([]);
  });

  it.each([
    ['the provider could not be reached', 'refuse'],
    ['the provider limited the rate', { error: refusal('limited', 429) }],
    ['the provider gave no token for it', { error: refusal('failed', 500) }],
  ] as const)('is sent again where %s', async (_, fault) => {
    failCreate(fault);
    expect((await read(setup, await launched())).status).toBe('running');
    expect(setup.plain.faults.countOf('createInstance')).toBe(2);
    expect(setup.plain.instances).toHaveLength(1);
  });

  it('is retried only until the deploy timeout of the provider', async () => {
    setup.plain.faults.plan = (method) => (method === 'createInstance' ? 'refuse' : 'none');
    const id = await launched();
    await setup.clock.advance(14 * MINUTE_MS);
    expect(await read(setup, id)).toMatchObject({
      status: 'failed',
      failureReason: 'provisioning_timeout',
      cleanup: 'none',
    });
  });
});

/** The configurations, with this reason announced in `eu-one`; undefined: none. */
function announcing(reason: UnavailableReason | undefined) {
  const unavailable = reason === undefined ? [] : [{ region: 'eu-one', reason }];
  return plainConfigurations.map((offer) => ({ ...offer, extras: { berth: { unavailable } } }));
}

describe('a provider whose platform does not answer', () => {
  const silent = () =>
    new ProviderError('conflict', 'POST /instances: 409, no', {
      status: 409,
      code: 'capacity_unavailable',
      reason: 'platform_silent',
    });

  /** A deployment that waits at the gate: `/availability` omits the offer, and `/configurations` gives the reason. */
  async function gated(reason: UnavailableReason | undefined, isClosed: () => boolean): Promise<string> {
    const [published] = announcing(undefined);
    Object.assign(setup.provider.catalog.offers.get('gpu-1') ?? {}, { extras: published?.extras });
    setup.plain.faults.plan = (method) => {
      if (method === 'listConfigurations') return { instead: announcing(reason) };
      return method === 'listAvailability' && isClosed() ? { instead: [] } : 'none';
    };
    return accept(setup);
  }

  it('is asked again until it answers, before the create and after it [launch-silent]', async () => {
    const startedAt = setup.clock.now();
    const isClosed = () => setup.clock.now() < startedAt + 3 * MINUTE_MS;
    const id = await gated('platform_silent', isClosed);
    setup.workers.start();
    await setup.clock.advance(2 * MINUTE_MS);
    expect([(await read(setup, id)).status, setup.plain.faults.countOf('createInstance')]).toEqual([
      'deploying',
      0,
    ]);
    await setup.clock.advance(3 * MINUTE_MS);
    expect((await read(setup, id)).status).toBe('running');
  });

  it('gets the create again after a 409 for that reason, and makes one machine', async () => {
    setup.plain.faults.plan = (method, nth) =>
      method === 'createInstance' && nth <= 6 ? { error: silent() } : 'none';
    expect((await read(setup, await launched())).status).toBe('running');
    expect(setup.plain.faults.countOf('createInstance')).toBe(7);
    expect(setup.plain.instances).toHaveLength(1);
  });

  it('is asked again if it may have the offer in stock again', async () => {
    const startedAt = setup.clock.now();
    const id = await gated(undefined, () => setup.clock.now() < startedAt + 30_000);
    setup.workers.start();
    await setup.clock.advance(2 * MINUTE_MS);
    expect((await read(setup, id)).status).toBe('running');
  });

  it.each(['gate', 'create'])(
    'fails the deployment where it stays silent until the deploy timeout, at the %s',
    async (at) => {
      const id = at === 'gate' ? await gated('platform_silent', () => true) : await accept(setup);
      if (at === 'create')
        setup.plain.faults.plan = (method) => (method === 'createInstance' ? { error: silent() } : 'none');
      setup.workers.start();
      await setup.clock.advance(16 * MINUTE_MS);
      expect(await read(setup, id)).toMatchObject({
        status: 'failed',
        failureReason: 'provisioning_timeout',
        failureDetails: 'provider-x could not take the order within 15 minutes; no machine was created.',
        cleanup: 'none',
      });
      expect(setup.plain.instances).toEqual([]);
    },
  );

  it('does not delay the failure of an offer that has left its region', async () => {
    const elsewhere = announcing(undefined).map((offer) => ({ ...offer, regions: ['us-two'] }));
    const id = await gated(undefined, () => true);
    const { plan } = setup.plain.faults;
    setup.plain.faults.plan = (method, ...rest) =>
      method === 'listConfigurations' ? { instead: elsewhere } : plan(method, ...rest);
    setup.workers.start();
    await setup.clock.advance(10_000);
    expect(await read(setup, id)).toMatchObject({ status: 'failed', failureReason: 'out_of_stock' });
  });

  it.each(['sold_out', 'maintenance', 'withheld'] as const)(
    'does not delay the failure of an offer that is %s',
    async (reason) => {
      const id = await gated(reason, () => true);
      setup.workers.start();
      await setup.clock.advance(10_000);
      expect(await read(setup, id)).toMatchObject({ status: 'failed', failureReason: 'out_of_stock' });
    },
  );
});

describe('a create that makes a machine whose id cannot be used [unusable-id]', () => {
  it.each(['i\0', ''])('fails, and alarms name the machine until it is gone: %j', async (id) => {
    const renamed = (made: object) => ({ ...made, id });
    setup.plain.faults.plan = (method) => {
      if (method === 'createInstance') return { answer: renamed };
      return method === 'listInstances' ? { answer: (list) => list.map(renamed) } : 'none';
    };
    const deployment = await launched();
    const name = toProviderName('00c0ffee', deployment);
    const failed = { status: 'failed', failureReason: 'provider_error', cleanup: 'wanted' };
    expect(await read(setup, deployment)).toMatchObject(failed);
    const alarms = () => setup.logged.filter(({ level }) => level === 'error');
    const alarm = { provider: 'provider-x', deployment, instance: id, name };
    expect(alarms()[0]).toMatchObject({
      message: expect.stringContaining('cannot be used'),
      fields: alarm,
    });
    await setup.clock.advance(61 * MINUTE_MS);
    expect(alarms().at(-1)).toMatchObject({
      message: expect.stringContaining('may still exist'),
      fields: { name },
    });
    setup.plain.vanish('i-1');
    await setup.clock.advance(6 * MINUTE_MS);
    expect((await read(setup, deployment)).cleanup).toBe('done');
  });
});

const broken = { status: 502, mayHaveHappened: true };

describe('a create whose answer was lost (F55) [launch-answer-lost]', () => {
  it.each([
    ['the connection breaks', 'commit-then-lose'],
    ['a gateway answers instead', { commitThenError: new ProviderError('failed', '502', broken) }],
    [
      'the answer is HTML',
      { commitThenError: new ProviderError('invalid', 'HTML', { mayHaveHappened: true }) },
    ],
    ['the answer comes late', { lateMs: 30_000 }],
  ] as const)('is found in the list, and never sent again: %s', async (_, fault) => {
    failCreate(fault);
    const id = await launched();
    expect(await read(setup, id)).toMatchObject({ status: 'running', providerInstanceId: 'i-1' });
    expect(setup.plain.faults.countOf('createInstance')).toBe(1);
    expect(await setup.store.read.ledger.segmentsOf('deployment', id)).toHaveLength(1);
  });

  it('and that made two instances keeps the older one, and the user pays for one [launch-made-two]', async () => {
    failCreate('commit-then-lose');
    const id = await accept(setup);
    setup.workers.start();
    await setup.clock.advance(1_000);
    setup.plain.create({
      configuration_id: 'gpu-1',
      region: 'eu-one',
      ssh_keys: ['ssh-ed25519 AAAA'],
      name: toProviderName('00c0ffee', id),
    });
    expect(setup.plain.instances.map(({ name }) => name?.slice(-4))).toEqual(['0001', '01-2']);
    await setup.clock.advance(2 * MINUTE_MS);
    expect(await read(setup, id)).toMatchObject({ status: 'running', providerInstanceId: 'i-1' });
    expect(statuses(setup.plain)).toEqual(['ONLINE']);
    expect(countLines(setup.logged, 'warn', 'no deployment needs')).toBe(1);
  });

  it('and that lists the machine twice keeps the one machine [launch-listed-twice]', async () => {
    setup.plain.faults.plan = (method, nth) => {
      if (method === 'createInstance' && nth === 1) return 'commit-then-lose';
      if (method === 'listInstances') return { answer: (list) => [...list, ...structuredClone(list)] };
      return 'none';
    };
    const id = await launched();
    await setup.clock.advance(2 * MINUTE_MS);
    expect(await read(setup, id)).toMatchObject({ status: 'running', providerInstanceId: 'i-1' });
    expect(setup.plain.faults.countOf('deleteInstance')).toBe(0);
    expect(countLines(setup.logged, 'warn', 'no deployment needs')).toBe(0);
  });

  it('and that made no instance fails the deployment, which costs nothing', async () => {
    failCreate('lose');
    const id = await launched();
    expect((await read(setup, id)).status).toBe('deploying');
    await setup.clock.advance(2 * MINUTE_MS);
    expect(await read(setup, id)).toMatchObject({
      status: 'failed',
      failureReason: 'provider_error',
      cleanup: 'done',
    });
    expect(setup.plain.faults.countOf('createInstance')).toBe(1);
    expect(await setup.store.read.ledger.segmentsOf('deployment', id)).toEqual([]);
  });

  it('and that makes an instance much later has it deleted [launch-made-late]', async () => {
    failCreate({ lateMs: 10 * MINUTE_MS });
    const id = await launched();
    await setup.clock.advance(9 * MINUTE_MS);
    expect(setup.plain.instances).toHaveLength(1);
    await setup.clock.advance(6 * MINUTE_MS);
    expect(setup.plain.instances).toEqual([]);
    expect((await read(setup, id)).status).toBe('failed');
  });

  it('waits for a list that cannot be read', async () => {
    setup.plain.faults.plan = (method, nth) => {
      if (method === 'createInstance') return 'commit-then-lose';
      return method === 'listInstances' && nth < 12 ? 'refuse' : 'none';
    };
    const id = await launched();
    await setup.clock.advance(2 * MINUTE_MS);
    expect((await read(setup, id)).status).toBe('running');
  });

  it('fails when the list could not be read until the deploy timeout, and its instance is still searched for', async () => {
    setup.plain.faults.plan = (method) => {
      if (method === 'createInstance') return 'commit-then-lose';
      return method === 'listInstances' ? 'refuse' : 'none';
    };
    const id = await launched();
    await setup.clock.advance(14 * MINUTE_MS);
    expect(await read(setup, id)).toMatchObject({
      status: 'failed',
      failureReason: 'provisioning_timeout',
      cleanup: 'wanted',
    });
    setup.plain.faults.plan = () => 'none';
    await setup.clock.advance(3 * MINUTE_MS);
    expect([(await read(setup, id)).cleanup, setup.plain.instances]).toEqual(['done', []]);
  });
});
