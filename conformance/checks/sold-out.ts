import type { Evidence } from '../evidence/evidence.ts';
import { lists } from '../scenarios/sold-out.ts';
import type { Exchange } from '../transcript/records.ts';
import { eachExchange, type Finding, notApplicable, notTested } from '../verdict/finding.ts';
import { answerOf } from '../verdict/words.ts';
import { isObject, isSuccess, jsonOf, parseJson, statusOf, textField } from '../wire/json.ts';
import { judgeAnswered } from './answered.ts';
import type { Check } from './check.ts';

export const soldOutChecks: readonly Check[] = [
  { id: 'AVL-SOLDOUT-001', level: 'lifecycle', scenarios: ['sold-out'], judge: judgeSoldOut },
  { id: 'AVL-SOLDOUT-002', level: 'lifecycle', scenarios: ['sold-out'], judge: judgeCode },
  { id: 'AVL-REALTIME-001', level: 'full', scenarios: ['race'], judge: judgeTakenOut },
  { id: 'AVL-REALTIME-002', level: 'full', scenarios: ['race'], judge: judgePutBack },
];

function judgeSoldOut(evidence: Evidence): Finding {
  const asked = evidence.step('sold-out/create');
  const after = evidence.step('sold-out/availability');
  const place = placeOf(asked);
  if (isSuccess(asked) && lists(after, place))
    return notTested(`the offer ${place.configurationId} became available in the meantime`);
  return judgeAnswered(
    [asked],
    'creates of a sold-out offer',
    [409],
    `409: ${place.configurationId} is listed with available false`,
  );
}

function judgeCode(evidence: Evidence): Finding {
  const conflicts = evidence
    .anySteps('sold-out/create', 'race/create', 'create/post')
    .filter((exchange) => statusOf(exchange) === 409);
  if (conflicts.length === 0) {
    const asked = evidence.step('sold-out/create');
    return notTested(`no create was refused for capacity: this one was answered ${answerOf(asked)}`);
  }
  return eachExchange(conflicts, 'creates that were refused for capacity', (exchange) => {
    const body = jsonOf(exchange);
    const code = textField(isObject(body) ? body['error'] : undefined, 'code');
    return code === 'capacity_unavailable'
      ? undefined
      : { expected: 'code capacity_unavailable', actual: `code ${code ?? 'absent'}` };
  });
}

function judgeTakenOut(evidence: Evidence): Finding {
  const read = evidence.step('race/availability-after-refusal');
  const place = raced(evidence);
  if (!isSuccess(read)) return notTested(`the read of /availability was answered ${answerOf(read)}`);
  return eachExchange([read], 'reads of /availability after a 409', (exchange) =>
    lists(exchange, place)
      ? {
          expected: `${place.configurationId} is not listed in ${place.region}, where a create of it has just been refused with 409`,
          actual: 'it is listed with available true',
        }
      : undefined,
  );
}

function judgePutBack(evidence: Evidence): Finding {
  const last = evidence.steps('race/availability-after-destruction').at(-1);
  const place = raced(evidence);
  const { race } = evidence.run.settings;
  const left = evidence.instances.filter(
    ({ resource }) => resource.step === 'race/create' && resource.state !== 'gone',
  );
  if (left.length > 0) return notTested(`${left.length} instances of the race were not seen to be gone`);
  if (last === undefined || !lists(last, place)) {
    if (race === undefined)
      return notTested('others may have taken what became free: --race names an offer that nobody else buys');
    if (!evidence.instances.some(({ resource }) => resource.step === 'race/create'))
      return notApplicable('an offer of which a unit could be had', 'no create of the race was accepted');
  }
  return eachExchange(
    last === undefined ? [] : [last],
    'reads of /availability after the destruction',
    (exchange) =>
      lists(exchange, place)
        ? undefined
        : {
            expected: `${place.configurationId} is listed in ${place.region} again, after its instances were destroyed`,
            actual: 'it is not listed',
          },
  );
}

/** The offer and the region of a create. */
function placeOf({ request }: Exchange): { configurationId: string; region: string } {
  const body = parseJson(request.body);
  return {
    configurationId: textField(body, 'configuration_id') ?? '',
    region: textField(body, 'region') ?? '',
  };
}

function raced(evidence: Evidence) {
  return placeOf(evidence.step('race/create'));
}
