import { createHash } from 'node:crypto';
import { counted } from '../../contract/counted.ts';
import { toTime } from '../views/values.ts';
import { factsOf } from './kind-facts.ts';
import type { AlarmKinds, AlarmNotice, Severity } from './model.ts';

/** How many alarms a text lists. */
const MOST_LISTED = 20;

/** One alarm of a message. */
interface ToldAlarm {
  status: 'open' | 'ended';
  kind: string;
  severity: Severity;
  subject: string;
  platform: string | null;
  since: string;
  until: string | null;
  text: string;
  runbook: string;
}

/** What a route tells people: its alarms, and the same as text. */
export interface AlarmMessage {
  /** The same for a message that is sent again. */
  id: string;
  route: string;
  /** The server that sends it. */
  server: string;
  title: string;
  text: string;
  alarms: readonly ToldAlarm[];
}

type Sender = Pick<AlarmMessage, 'route' | 'server'>;

/** Writes one message about several alarms. */
export function toMessage(sender: Sender, kinds: AlarmKinds, notices: readonly AlarmNotice[]): AlarmMessage {
  const alarms = notices.map(
    ({ kind, subject, platform, since, until, text }): ToldAlarm => ({
      status: until === null ? 'open' : 'ended',
      kind,
      ...factsOf(kinds, kind),
      subject,
      platform,
      since: toTime(since),
      until: toTime(until),
      text,
    }),
  );
  const open = alarms.filter(({ status }) => status === 'open');
  const ended = alarms.filter(({ status }) => status === 'ended');
  const more = alarms.length - MOST_LISTED;
  const listed = [...open, ...ended].slice(0, MOST_LISTED).map(describe);
  const names = notices.map(({ kind, subject, since, until }) => [kind, subject, since, until]);
  return {
    ...sender,
    id: createHash('sha256')
      .update(JSON.stringify([sender.route, names]))
      .digest('hex')
      .slice(0, 32),
    title: `Berth on ${sender.server}: ${[titleOf(open, 'alarm'), titleOf(ended, 'ended alarm')].filter(Boolean).join(', ')}`,
    text: [...listed, ...(more > 0 ? [`and ${more} more: see the console or \`alarms ls\``] : [])].join(
      '\n\n',
    ),
    alarms,
  };
}

/** A message without an alarm, by which an operator tries a route. */
export function toTestMessage(sender: Sender, by: string, now: number): AlarmMessage {
  const title = `Berth on ${sender.server}: test of the route ${sender.route}`;
  const id = createHash('sha256').update(`${title} ${now}`).digest('hex').slice(0, 32);
  return { ...sender, id, title, text: `${by} tests this route. No alarm is meant.`, alarms: [] };
}

function titleOf(alarms: readonly ToldAlarm[], noun: string): string {
  const [first] = alarms;
  if (first === undefined) return '';
  const worst = alarms.some(({ severity }) => severity === 'critical') ? 'critical' : 'warning';
  const severity = first.status === 'open' ? ` (${worst})` : '';
  const name = `${first.kind} ${first.subject}`;
  return `${counted(alarms.length, noun)}${severity}: ${name}${alarms.length > 1 ? ', …' : ''}`;
}

function describe({ status, severity, kind, subject, since, until, text, runbook }: ToldAlarm): string {
  const head = status === 'open' ? severity.toUpperCase() : 'ENDED';
  const times = until === null ? `since ${since}` : `from ${since} to ${until}`;
  return `${head} ${kind} ${subject}\n${text}\n${times}; see ${runbook}`;
}
