import { expect, it } from 'vitest';
import { collectLog } from '../../../test/support/doubles/log.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { loadConfig } from '../../config/load.ts';
import { ok } from '../../ports/diagnosis.ts';
import { InUse } from '../../ports/errors.ts';
import { configuredDriver } from '../drivers/driver-settings.ts';
import { PlatformChecks } from './platform-checks.ts';

/** The checks of a platform whose diagnosis waits for `answer`. `signals`: one for each run. */
function checksOf(clock: VirtualClock) {
  const { config } = loadConfig({ file: undefined, flags: {}, env: {} });
  const catalog = { regions: new Map(), offers: new Map() };
  const driver = configuredDriver(config, undefined, { catalog, clock, env: {}, log: collectLog().log });
  const answers: PromiseWithResolvers<void>[] = [];
  const signals: (AbortSignal | undefined)[] = [];
  const definition: typeof driver.definition = {
    ...driver.definition,
    check: () => {
      throw new InUse('this server uses it');
    },
    async *diagnose(_options, { asking }) {
      const answer = Promise.withResolvers<void>();
      answers.push(answer);
      signals.push(asking?.signal);
      asking?.signal.addEventListener('abort', () => answer.reject(new Error('it was aborted')));
      yield ok('disk', 'it has room');
      await answer.promise;
      yield ok('network', 'it is there');
    },
  };
  return { checks: new PlatformChecks([{ ...driver, definition }], clock), answers, signals };
}

const subjectsIn = (found: ReturnType<PlatformChecks['read']>) =>
  found?.findings.map(({ subject }) => subject);
const settle = () => new Promise((resolve) => setImmediate(resolve));

it('shows the findings so far at once, and runs a check once for all who look [doctor-in-console]', async () => {
  const { checks, answers } = checksOf(new VirtualClock());
  expect(checks.read('elsewhere')).toBeNull();
  expect(checks.read('default')).toMatchObject({ isFinished: false, findings: [] });
  await settle();
  expect(subjectsIn(checks.read('default'))).toEqual(['driver simulator', 'disk']);
  answers[0]?.resolve();
  await settle();
  const done = checks.read('default');
  expect([done?.isFinished, subjectsIn(done)]).toEqual([true, ['driver simulator', 'disk', 'network']]);
  expect(answers).toHaveLength(1);
});

it('checks again after a minute, and not while a check runs', async () => {
  const clock = new VirtualClock();
  const { checks, answers } = checksOf(clock);
  checks.read('default');
  await settle();
  answers[0]?.resolve();
  await settle();
  await clock.advance(59_999);
  expect(checks.read('default')).toMatchObject({ isFinished: true });
  await clock.advance(1);
  expect(checks.read('default')).toMatchObject({ isFinished: false });
  await settle();
  expect(answers).toHaveLength(2);
  answers[1]?.resolve();
  await checks.stop();
});

it('reports a platform that hangs within its time limit, and aborts the question', async () => {
  const clock = new VirtualClock();
  const { checks, signals } = checksOf(clock);
  checks.read('default');
  await settle();
  await clock.advance(6_000);
  await settle();
  expect(signals[0]?.aborted).toBe(true);
  expect(checks.read('default')?.findings.at(-1)).toMatchObject({ verdict: 'broken' });
  expect(checks.read('default')?.isFinished).toBe(true);
});

it('ends with the server', async () => {
  const { checks, signals } = checksOf(new VirtualClock());
  checks.read('default');
  await settle();
  await checks.stop();
  expect(signals[0]?.aborted).toBe(true);
});
