import { instancePath } from '../../contract/paths.ts';
import { BudgetError } from '../../resources/budget.ts';
import { isObject, stringsField } from '../../text/json.ts';
import { BadCreates } from '../bad-creates.ts';
import type { Placement } from '../placement.ts';
import type { Scenario } from '../scenario.ts';
import type { Instance, Session } from '../session.ts';
import { confirmGone, instanceRequest, readPlacements, toInstance } from './purchase.ts';
import { REFUSAL_CASES, type RefusalCase, unsoldRegion } from './refusal-cases.ts';

/** Sends creates that must be refused, and checks that nothing was created. */
export const refusals: Scenario = {
  id: 'refusals',
  level: 'lifecycle',
  title: 'sends creates that must be refused',
  after: ['catalog'],
  buys: [],
  async run(session) {
    const choices = await readPlacements(session, 'refusals/availability');
    await session.get('refusals/list-before', '/instances');
    const made: Instance[] = [];
    const family = new BadCreates(session);
    for (const refusal of REFUSAL_CASES) {
      const placement = choices.find((choice) => suits(session, choice, refusal));
      if (placement === undefined) {
        skip(session, refusal, choices);
        continue;
      }
      const send = () => ask(session, refusal, placement, family);
      made.push(...(await send().catch((error: unknown) => afterDestruction(session, made, error, send))));
    }
    made.push(...(await askWhereItIsNotSold(session, choices, family)));
    await session.get('refusals/list', '/instances');
    for (const instance of made) await confirmGone(session, 'refusals/destroy', instance);
  },
};

/** Resources sold by mistake count towards the cost cap until they are gone. If the cap is reached, waits for that. */
async function afterDestruction(
  session: Session,
  made: Instance[],
  error: unknown,
  send: () => Promise<Instance[]>,
): Promise<Instance[]> {
  if (!(error instanceof BudgetError) || made.length === 0) throw error;
  for (const instance of made.splice(0)) await confirmGone(session, 'refusals/destroy', instance);
  return send();
}

function suits(session: Session, { offer }: Placement, { needs }: RefusalCase): boolean {
  if (needs === 'cloud-init') return offer['supports_cloud_init'] === true;
  if (needs === 'images') return stringsField(offer, 'os_options').length > 0;
  return needs !== 'storage' || session.locations !== undefined;
}

const CAPABILITIES = { 'cloud-init': 'cloud-init', images: 'os_options', storage: 'storage tier' } as const;

function skip(session: Session, { step, needs }: RefusalCase, choices: readonly Placement[]): void {
  if (needs === undefined || choices.length === 0) {
    session.skip([step], 'no offer is available, and where none is every create may be refused');
    return;
  }
  const reason =
    needs === 'storage'
      ? 'GET /volumes/locations is not there'
      : `no available offer has ${CAPABILITIES[needs]}`;
  session.skip([step], reason, CAPABILITIES[needs]);
}

/** Returns the instance if one was created by mistake; its DELETE has been sent. */
async function ask(
  session: Session,
  refusal: RefusalCase,
  placement: Placement,
  family: BadCreates,
): Promise<Instance[]> {
  if (!family.mayAsk(refusal.step)) return [];
  const request = instanceRequest(session, { placement, step: refusal.step, isEndedAtOnce: true });
  const { entry } = await session.create({
    ...request,
    body: (entry) => defective(refusal, request.body(entry)),
  });
  const instance = toInstance(entry, placement);
  if (instance === undefined) return [];
  if (refusal.mayBeAccepted !== true) family.accepted();
  await session.delete('refusals/destroy/delete', instancePath(instance));
  return [instance];
}

function defective({ body }: RefusalCase, valid: unknown): unknown {
  return body(isObject(valid) ? valid : {});
}

async function askWhereItIsNotSold(
  session: Session,
  choices: readonly Placement[],
  family: BadCreates,
): Promise<Instance[]> {
  const step = 'refusals/unsold-region';
  for (const placement of choices) {
    const region = unsoldRegion(session, placement);
    const defect = 'a region in which the offer is not sold';
    if (region !== undefined)
      return ask(
        session,
        { of: 'NEG-REGION-001', step, defect, body: (valid) => ({ ...valid, region }) },
        placement,
        family,
      );
  }
  session.skip(
    [step],
    'every available offer is sold in every region',
    'an offer that is not sold everywhere',
  );
  return [];
}
