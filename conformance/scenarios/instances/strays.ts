import { adoptOrphans, reopenListed, takeOver } from '../../resources/presence.ts';
import { idOf, type JsonObject, stringField } from '../../text/json.ts';
import { listOf, successOf } from '../../transcript/exchange.ts';
import type { Exchange, SshRung } from '../../transcript/records.ts';
import type { Session } from '../session.ts';

/** No more instances than this are tried with the run's key. */
const MOST_TRIED = 8;
/** Nor with more keys than these. */
const MOST_KEYS = 24;
const LOGGED_IN: readonly SshRung[] = ['execute', 'done'];

/**
 * Looks for instances of the run that its ledger does not know: those with its names, and those that its key logs in to.
 * They are destroyed with the rest. All others are left alone, since the account may be shared.
 */
export async function lookForUnexplained(session: Session, abandon: AbortSignal | undefined): Promise<void> {
  const list = await session.client.send('cleanup/strays', { method: 'GET', path: '/instances' }, abandon);
  await takeOverUnexplained(session, list);
}

/** As `lookForUnexplained`, in a list of all instances. */
export async function takeOverUnexplained(session: Session, list: Exchange): Promise<void> {
  const { ledger, idsBefore } = session;
  reopenListed(ledger, list);
  adoptOrphans(ledger, list);
  const known = new Set(ledger.entries.map(({ id }) => id));
  const unexplained = (listOf(list) ?? []).filter((instance) => {
    const id = idOf(instance);
    return id !== undefined && !known.has(id) && !idsBefore.has(id);
  });
  for (const instance of unexplained.slice(0, MOST_TRIED)) {
    if (session.signal.aborted) return;
    const shown = await onceOnline(session, instance);
    if (shown === undefined) continue;
    if (await letsIn(session, shown)) takeOver(ledger, list.step, instance);
  }
  session.hasLookedForUnexplained = true;
}

/**
 * Whether it lets in a key that the run gave for one of its instances, the latest first. A machine that also lets in a
 * key that was injected nowhere lets in anyone, and may be another client's.
 */
async function letsIn(session: Session, shown: JsonObject): Promise<boolean> {
  const { rung: withOther } = await session.login('cleanup/stray-other', shown, 'other');
  if (LOGGED_IN.includes(withOther)) return false;
  const made = session.ledger.entries.filter(({ type, id }) => type === 'instance' && id !== undefined);
  for (const { n } of made.toReversed().slice(0, MOST_KEYS)) {
    const { rung } = await session.login('cleanup/stray-login', shown, 'foreign', { owner: n });
    if (LOGGED_IN.includes(rung)) return true;
    // Without an SSH server another key changes nothing.
    if (rung !== 'authenticate') return false;
  }
  return false;
}

/** The instance while it is ONLINE; undefined if it does not come ONLINE. */
async function onceOnline(session: Session, listed: JsonObject): Promise<JsonObject | undefined> {
  const [id, status] = [idOf(listed), stringField(listed, 'status')];
  if (status === 'ONLINE') return listed;
  if (id === undefined || status !== 'PROVISIONING') return undefined;
  const read = await session.poll(
    'cleanup/stray-poll',
    { id, region: stringField(listed, 'region') ?? '' },
    (now) => now === 'ONLINE',
    { text: `${id}, which no create of the run returned, to be ONLINE`, onTheWay: ['PROVISIONING'] },
  );
  return read && successOf(read);
}
