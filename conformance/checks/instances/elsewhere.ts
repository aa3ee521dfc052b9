import type { Evidence } from '../../evidence/evidence.ts';
import { type Finding, judgeEach, judgeEachExchange, notTested } from '../../evidence/finding.ts';
import { isLoggedIn } from '../../evidence/logins.ts';
import { lists } from '../../scenarios/catalog/catalog.ts';
import { RECLAIMED } from '../../scenarios/scenario.ts';
import { answerOf, isBeyondQuota, isSuccess, statusOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import { heldBefore, placeOf } from '../capacity/place.ts';
import { type Check, shownStatus, stillWaiting, withoutRateLimited } from '../check.ts';

/** What is sold in a second region can be bought, and used, there. */
export const elsewhereChecks: readonly Check[] = [
  {
    id: 'REG-BUY-001',
    level: 'full',
    scenarios: ['online', 'elsewhere', 'elsewhere-end'],
    judge: judgeElsewhere,
  },
];

function judgeElsewhere(evidence: Evidence): Finding {
  const asked = withoutRateLimited(evidence.steps('elsewhere/create'));
  const made = asked.find(isSuccess);
  return made === undefined ? judgeRefused(evidence, asked) : judgeLife(evidence, made);
}

/** Others may have been quicker, unless it is refused twice and still listed each time. */
function judgeRefused(evidence: Evidence, asked: readonly Exchange[]): Finding {
  const place = placeOf(evidence.step('elsewhere/create'));
  const last = evidence.anySteps('elsewhere/still-listed').at(-1);
  const isListed = last !== undefined && isSuccess(last) && lists(last, place);
  const refused = asked.filter((exchange) => statusOf(exchange) === 409);
  const ofAlone = refused.filter((exchange) => heldBefore(evidence, exchange).length === 0);
  const isLawful = refused.some(isBeyondQuota) || ofAlone.length < 2 || !isListed;
  if (refused.length === asked.length && isLawful)
    return notTested(
      `${place.configurationId} in ${place.region} was refused with 409, as if it had just been sold`,
    );
  return judgeEachExchange(asked.slice(-1), 'creates in a second region', (exchange) => ({
    expected: `201: ${place.configurationId} is listed as available in ${place.region}`,
    actual: answerOf(exchange),
  }));
}

function judgeLife(evidence: Evidence, made: Exchange): Finding {
  const timeline = evidence.instances.find(({ created }) => created === made);
  if (timeline?.reclaimed !== undefined) return notTested(RECLAIMED);
  const last = evidence.steps('elsewhere/poll').at(-1);
  const status = shownStatus(last);
  if (status === 'PROVISIONING') return stillWaiting('the instance', status);
  if (status === 'ERROR') return notTested('the machine failed, which the contract allows: ERROR');
  if (status !== 'ONLINE' || last === undefined)
    return judgeEachExchange([last ?? made], 'instances in a second region', () => ({
      expected: 'ONLINE',
      actual: `it reads ${status}`,
    }));
  if (!evidence.logins.some((login) => login.step === 'online/login-first' && isLoggedIn(login)))
    return notTested('no key logged in to the first instance either');
  return judgeEach(
    evidence.loginsAt('elsewhere/login'),
    'logins to an instance in a second region',
    (login) =>
      isLoggedIn(login)
        ? undefined
        : {
            expected: 'the first of its keys logs in, as in the first region',
            actual: login.message ?? `no further than ${login.rung}`,
          },
    (login) => login,
  );
}
