import { instancePath } from '../../contract/paths.ts';
import type { Entry } from '../../resources/ledger.ts';
import { isConfirmedGone } from '../../resources/presence.ts';
import type { KeyType } from '../../ssh/ssh-client.ts';
import { objectsField } from '../../text/json.ts';
import { isSuccess, jsonOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import { type Placement, placements, type Wanted } from '../placement.ts';
import type { Instance, Session } from '../session.ts';

export interface Purchase {
  placement: Placement;
  step: string;
  /** Fields in addition to those of `createBody`. */
  extra?: Readonly<Record<string, unknown>>;
  /** The name of another instance, to test duplicate names. */
  name?: string;
  /** The types of its keys; default: two of Ed25519. */
  keyTypes?: readonly KeyType[];
  /** It is destroyed at once if it is created, usually because it must be refused. */
  isEndedAtOnce?: true;
}

/** How often an empty list is read before nothing is bought: it may be empty at one moment only. */
const READS_OF_EMPTY = 3;

/** Reads what can be bought now, cheapest first, as the contract's client does before each purchase. */
export async function readPlacements(
  session: Session,
  step: string,
  wanted: Wanted = session.settings,
): Promise<Placement[]> {
  for (let read = 1; ; read++) {
    const exchange = await session.get(step, '/availability');
    const offers = objectsField(jsonOf(exchange), 'configurations');
    const isOdd = offers.length === 0 && isSuccess(exchange) && availableOffers(session) > 0;
    if (!isOdd || read === READS_OF_EMPTY) return placements(offers, wanted);
    await session.sleep(Math.min(session.settings.pollIntervalMs, 2000));
  }
}

/** How many offers /configurations had with `available` true. */
export function availableOffers({ configurations }: Session): number {
  return configurations.filter(({ available }) => available === true).length;
}

/** A unit that becomes free is listed again within this time (docs/decisions/0010). */
export const PUT_BACK_MS = 75_000;

/** As `readPlacements`, after the run's own instance was destroyed: waits for its unit if nothing else is listed. */
export async function awaitPlacements(
  session: Session,
  step: string,
  wanted: Wanted = session.settings,
): Promise<Placement[]> {
  const startedAt = session.now();
  for (;;) {
    const found = await readPlacements(session, step, wanted);
    const isOver = session.now() - startedAt >= Math.min(PUT_BACK_MS, session.settings.readyTimeoutMs);
    const hasEnded = session.ledger.entries.some(
      ({ type, state }) => type === 'instance' && state === 'gone',
    );
    if (found.length > 0 || isOver || !hasEnded) return found;
    session.waitsFor('an offer to be available again');
    await session.sleep(session.settings.pollIntervalMs);
  }
}

/** Waits for units that the run gave back, except while it holds others, which may be why nothing is listed. */
export function placementsNow(session: Session, step: string, wanted?: Wanted): Promise<Placement[]> {
  return (session.holdsInstances ? readPlacements : awaitPlacements)(session, step, wanted);
}

/** The request to create one instance. */
export function instanceRequest(session: Session, purchase: Purchase) {
  const { placement, step, name, isEndedAtOnce } = purchase;
  const { region, pricePerHour } = placement;
  return {
    type: 'instance' as const,
    step,
    body: (entry: Pick<Entry, 'n' | 'name'>) => createBody(session, purchase, entry),
    region,
    ...(pricePerHour !== undefined && { pricePerHour }),
    ...(name !== undefined && { name }),
    ...(isEndedAtOnce && { lifeMs: session.settings.readyTimeoutMs }),
  };
}

/** Creates one instance. `instance` is undefined if none was created. Throws `BudgetError`. */
export async function buyInstance(
  session: Session,
  purchase: Purchase,
): Promise<{ exchange: Exchange; instance: Instance | undefined }> {
  const { entry, exchange } = await session.create(instanceRequest(session, purchase));
  return { exchange, instance: toInstance(entry, purchase.placement) };
}

/** The instance of a ledger entry, or undefined if nothing was created. */
export function toInstance(entry: Instance['entry'], placement: Placement): Instance | undefined {
  return entry.id === undefined ? undefined : { entry, id: entry.id, region: placement.region, placement };
}

/** A valid body of a create: the offer in one of its regions, its keys, and a name. */
function createBody(
  session: Session,
  { placement, extra, keyTypes, isEndedAtOnce }: Purchase,
  { n, name }: Pick<Entry, 'n' | 'name'>,
): Record<string, unknown> {
  return {
    configuration_id: placement.configurationId,
    region: placement.region,
    ssh_keys: session.publicKeys(n, isEndedAtOnce !== true, keyTypes),
    name,
    ...extra,
  };
}

/**
 * Destroys an instance and polls until it reads 404 or DESTROYED and no list shows it alive. Only then is it marked as
 * gone in the ledger. The steps are `<step>/delete`, `<step>/poll` and `<step>/list`. Returns the exchange of the
 * DELETE.
 */
export async function destroyAndConfirm(
  session: Session,
  step: string,
  instance: Instance,
): Promise<Exchange> {
  const deleted = await session.delete(`${step}/delete`, instancePath(instance));
  await confirmGone(session, step, instance, deleted.endedAt);
  return deleted;
}

/** Polls until a destroyed instance is confirmed gone; `askedAt` is when its DELETE was answered. */
export async function confirmGone(
  session: Session,
  step: string,
  instance: Instance,
  askedAt?: number,
): Promise<void> {
  const last = await session.poll(
    `${step}/poll`,
    instance,
    (status) => status === '404' || status === 'DESTROYED',
    {
      text: `${instance.entry.name} to be gone`,
      onTheWay: ['DESTROYING'],
      ...(askedAt !== undefined && { askedAt }),
    },
  );
  if (last === undefined) return;
  const list = await session.get(`${step}/list`, '/instances');
  if (isConfirmedGone(instance.id, last, list)) session.ledger.gone(instance.entry);
}
