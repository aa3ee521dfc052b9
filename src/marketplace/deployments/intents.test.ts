import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ProviderFault } from '../../../test/support/doubles/provider-faults.ts';
import { intent } from '../../../test/support/rows/marketplace-rows.ts';
import { ProviderError, type ProviderProblem } from '../../client/orchestrator-client.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import { pauseDeployment, restartDeployment, resumeDeployment } from './lifecycle.ts';
import {
  beginAttach,
  caller,
  deploy,
  deployStopped,
  type Market,
  openMarket,
  outcomeOf,
  read,
  withoutRevision,
} from './market.fixture.ts';

const changes = {
  pause: { begin: pauseDeployment, method: 'stopInstance', prepare: deploy },
  resume: { begin: resumeDeployment, method: 'startInstance', prepare: deployStopped },
  restart: { begin: restartDeployment, method: 'restartInstance', prepare: deploy },
} as const;
const names = ['pause', 'resume', 'restart'] as const;

let market: Market;
beforeEach(async () => {
  market = await openMarket();
});
afterEach(() => market.close());

describe.each(names)('a %s', (name) => {
  const { begin, method, prepare } = changes[name];
  const change = (by = caller, id = 'dep-1') => outcomeOf(market.clock, begin(market.deps, by, id));
  const sent = () => market.plain.faults.countOf(method);

  async function expectNothingChanged(before: DeploymentRecord): Promise<void> {
    expect(withoutRevision(await read(market))).toEqual(withoutRevision(before));
    expect(market.clock.pendingTimers).toBe(0);
  }

  it.each(names)('is a 409 while another change is in flight: %s [change-in-flight]', async (kind) => {
    const action = intent(kind, { since: market.clock.now() + 3 * 3_600_000 });
    const before = await prepare(market, { action });
    expect(await change()).toMatchObject({ code: 'CHANGE_IN_PROGRESS', status: 409 });
    await expectNothingChanged(before);
    expect(sent()).toBe(0);
  });

  it('is a 409 while a volume is being attached', async () => {
    const before = await prepare(market);
    await beginAttach(market);
    expect(await change()).toMatchObject({ code: 'CHANGE_IN_PROGRESS', status: 409 });
    await expectNothingChanged(before);
    expect(sent()).toBe(0);
  });

  it('of an ended deployment whose volume is being detached is a 400', async () => {
    await deploy(market, { status: 'terminated', stoppedAt: market.clock.now() });
    await beginAttach(market);
    expect(await change()).toMatchObject({ code: 'INVALID_STATUS', status: 400 });
  });

  const refusal = (problem: ProviderProblem, status: number, mayHaveHappened = false) => ({
    error: new ProviderError(problem, 'no', { status, mayHaveHappened }),
  });
  const conflict = (code: string) => ({ error: new ProviderError('conflict', 'no', { status: 409, code }) });
  const busy = conflict('operation_in_progress');
  const refusals: [string, string, number, ProviderFault][] = [
    ['unreachable', 'PROVIDER_REFUSED', 502, 'refuse'],
    ['400', 'PROVIDER_REFUSED', 502, refusal('refused', 400)],
    ['401', 'PROVIDER_REFUSED', 502, refusal('unauthorized', 401)],
    ['404', 'PROVIDER_REFUSED', 502, refusal('not_found', 404)],
    ['429', 'PROVIDER_REFUSED', 502, refusal('limited', 429)],
  ];
  if (name !== 'resume')
    refusals.push(
      ['409', 'PROVIDER_REFUSED', 502, conflict('invalid_state')],
      ['busy with another change', 'CHANGE_IN_PROGRESS', 409, busy],
    );

  it.each(refusals)(
    'that the provider refuses changes nothing: %s is a %s [provider-refused]',
    async (_, code, status, fault) => {
      const before = await prepare(market);
      market.plain.faults.plan = (called) => (called === method ? fault : 'none');
      expect(await change()).toMatchObject({ code, status });
      await expectNothingChanged(before);
      expect(sent()).toBe(1);
    },
  );

  it.each([500, 504])('that is answered %i is a 504: it may still take effect', async (status) => {
    await prepare(market);
    const fault = refusal('failed', status, true);
    market.plain.faults.plan = (called) => (called === method ? fault : 'none');
    expect(await change()).toMatchObject({ code: 'PROVIDER_SLOW', status: 504 });
    expect(sent()).toBe(1);
  });
});
