import { expect, it } from 'vitest';
import { CHECKS } from '../checks/index.ts';
import { loadRequirements } from '../contract/requirements.ts';
import { isCreate } from '../evidence/instances.ts';
import { refusal } from '../mutants/deviate.ts';
import { reddened, runAgainst, type Subject } from '../mutants/harness.ts';
import { expectConformant } from '../mutants/matrix.ts';
import type { Variation } from '../mutants/mutant.ts';
import { ApiError } from '../mutants/reference/errors.ts';
import { statusOf } from '../transcript/exchange.ts';
import { judge } from '../verdict/judge.ts';

const { rows } = loadRequirements();

/** The account may have that many instances at the same time. */
function quotaOf(most: number): NonNullable<Variation['behave']> {
  return (rules) => {
    let held = 0;
    return {
      ...rules,
      claimCapacity(offer, region) {
        if (held >= most) throw new ApiError(409, 'quota_exceeded', 'The account has what it may have.');
        const isClaimed = rules.claimCapacity(offer, region);
        if (isClaimed) held++;
        return isClaimed;
      },
      releaseCapacity(offer, region) {
        held--;
        rules.releaseCapacity(offer, region);
      },
    };
  };
}

const lawful: readonly Variation[] = [
  {
    id: 'busy-after-a-start',
    why: 'ONLINE, POST stop, Condition: Instance stoppable',
    behave: (rules, clock) => ({
      ...rules,
      mayStop: (instance) => rules.mayStop(instance) && clock.wall() - instance.updatedAtMs >= 5_000,
    }),
  },
  {
    id: 'ids-of-a-region',
    why: 'The client always sends `region`; an orchestrator with globally unique instance ids may ignore it.',
    warns: ['INS-REGION-001'],
    behave: (rules) => ({
      ...rules,
      answer: (request, answer) =>
        request.route?.includes('{instanceId}') && !request.query.has('region')
          ? refusal(404, 'not_found')
          : rules.answer(request, answer),
    }),
  },
  {
    id: 'boots-before-it-answers-and-cannot-resume',
    why: 'nothing says that a read is answered before a machine has booted; a platform may not resume it',
    options: { bootMs: 1_500, resume: false },
    behave: (rules) => ({
      ...rules,
      answerDelayMs: ({ route }) => (route === 'GET /instances/{instanceId}' ? 900 : 0),
    }),
  },
  {
    id: 'no-more-than-16-kb-of-user-data',
    why: 'nothing says how large cloud_init may be, or which types of keys are taken',
    behave: (rules) => ({
      ...rules,
      validateCreate: (body, context) =>
        JSON.stringify(body).length > 16_384 || JSON.stringify(body).includes('ssh-rsa ')
          ? [{ path: 'cloud_init', message: 'at most 16 kB, and no RSA keys' }]
          : rules.validateCreate(body, context),
    }),
  },
  {
    id: 'a-stopped-machine-costs-its-disk',
    why: 'Current effective USD per hour; compute billing pauses',
    warns: ['INS-PRICE-003'],
    behave: (rules) => ({
      ...rules,
      pricePerHour: (instance) => rules.pricePerHour(instance) * (instance.status === 'STOPPED' ? 0.01 : 1),
    }),
  },
  {
    id: 'quota-of-two-instances',
    why: '409 is for more than lost capacity; a quota says nothing of the stock',
    behave: quotaOf(2),
  },
  {
    id: 'quota-of-three-instances',
    why: 'the same, where the race gets a unit beside the first instance, and not two',
    behave: quotaOf(3),
  },
];

it.each(lawful.map((one) => [one.id, one] as const))('%s is conformant', (_id, one) => expectConformant(one));

it('an instance that is not replaced, as no other is sold, fails nothing', async () => {
  const behave: Subject['behave'] = (rules) => {
    let sold = 0;
    return {
      ...rules,
      answerDelayMs: ({ route }) => (route === 'GET /instances/{instanceId}' ? 900 : 0),
      claimCapacity: (offer, region) => sold++ === 0 && rules.claimCapacity(offer, region),
    };
  };
  const needs = [{ level: 'lifecycle', scenarios: ['boot', 'destroy'] }] as const;
  const trial = await runAgainst({ options: { bootMs: 1_500, resume: false }, behave }, rows, needs);
  expect(
    trial.records.some((record) => record.kind === 'exchange' && record.step === 'boot/unresumed/delete'),
  ).toBe(true);
  expect(reddened(trial)).toEqual([]);
  expect(trial.leaked).toEqual([]);
});

it('a run that is cut short by the quota, after any refused create, fails nothing', async () => {
  const quota = quotaOf(2);
  const { records } = await runAgainst({ behave: (rules, _hit, clock) => quota(rules, clock) }, rows);
  const refused = records.flatMap((record, index) =>
    record.kind === 'exchange' && isCreate(record) && statusOf(record) === 409 ? [index + 1] : [],
  );
  expect(refused.length).toBeGreaterThan(5);
  for (const length of refused) {
    const red = judge(records.slice(0, length), rows, CHECKS).filter(({ verdict }) => verdict === 'fail');
    expect(red.map(({ requirement }) => requirement.id)).toEqual([]);
  }
});

it('a second stop that is refused three times fails', async () => {
  const refused: Subject['behave'] = (rules, hit) => {
    const stopped = new Set<string>();
    return {
      ...rules,
      mayStop(instance) {
        if (!rules.mayStop(instance)) return false;
        if (!stopped.has(instance.id)) return Boolean(stopped.add(instance.id));
        hit();
        return false;
      },
    };
  };
  const needs = CHECKS.filter(({ id }) => id === 'CYCLE-AGAIN-001');
  const trial = await runAgainst({ behave: refused }, rows, needs);
  expect(trial.hits).toBe(3);
  expect(reddened(trial)).toEqual(['CYCLE-AGAIN-001']);
});
