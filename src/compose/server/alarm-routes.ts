import { createWireTransport } from '../../client/transport.ts';
import { hookProblem, type RouteEntry, type SmtpEntry } from '../../config/alarms-schema.ts';
import type { Environment } from '../../config/settings.ts';
import { SmtpMailer } from '../../marketplace/mail/mailer.ts';
import type { AlarmMessage } from '../../operator-kit/alarms/message.ts';
import type { AlarmRoute } from '../../operator-kit/alarms/notifier.ts';
import type { Clock } from '../../ports/clock.ts';
import { Fatal } from '../../ports/errors.ts';
import { readSecretOf } from './secret.ts';

/** TLS begins with the first byte there. */
const SMTPS_PORT = 465;
const CONNECT_MS = 10_000;
const ANSWER_MS = 20_000;

/** Creates the mailer of an SMTP server. @throws {Fatal} if its password is missing */
export function createSmtpMailer(
  { host, port, user, password_env, from }: SmtpEntry,
  env: Environment,
): SmtpMailer {
  const server = { host, port, secure: port === SMTPS_PORT, from };
  if (user === undefined) return new SmtpMailer(server);
  const password = readSecretOf(password_env, env, `the password of ${user} at ${host}`);
  return new SmtpMailer({ ...server, user, password });
}

/** Creates the configured routes of alarms. @throws {Fatal} if a secret of one is missing or no URL */
export function createAlarmRoutes(
  { alarms: { routes }, mail }: { alarms: { routes: readonly RouteEntry[] }; mail?: SmtpEntry | undefined },
  env: Environment,
  clock: Pick<Clock, 'now'>,
): AlarmRoute[] {
  return routes.map(({ name, severity, kinds, platforms, providers, ...target }) => ({
    name,
    severity,
    kinds,
    platforms: platforms ?? providers,
    ...channelOf(name, { ...target, mail }, env, clock),
  }));
}

type Channel = Pick<AlarmRoute, 'type' | 'send' | 'close'>;

function channelOf(
  name: string,
  {
    webhook,
    slack,
    email,
    mail,
  }: Pick<RouteEntry, 'webhook' | 'slack' | 'email'> & { mail: SmtpEntry | undefined },
  env: Environment,
  clock: Pick<Clock, 'now'>,
): Channel {
  if (email !== undefined && mail !== undefined) {
    const mailer = createSmtpMailer(mail, env);
    return {
      type: 'email',
      send: ({ id, title, text }) => mailer.send({ id, to: email.to, subject: title, text }),
      close: () => mailer.close(),
    };
  }
  const hook = webhook ?? slack;
  if (hook === undefined)
    throw new Fatal(`The route ${name} needs a webhook, a Slack webhook, or an e-mail with \`mail\`.`);
  const url = hook.url ?? readSecretOf(hook.url_env, env, `the URL of the route ${name}`);
  const problem = hookProblem(url, hook.allow_private);
  if (problem !== null) throw new Fatal(`The URL of the route ${name} cannot be used: ${problem}.`);
  const post = poster(url, hook.allow_private, clock);
  return webhook === undefined
    ? { type: 'slack', send: (message) => post.send({ text: toSlackText(message) }), close: post.close }
    : { type: 'webhook', send: (message) => post.send({ version: 1, ...message }), close: post.close };
}

/** Sends JSON. It connects only to the addresses that were checked, and follows no redirect. */
function poster(url: string, allowPrivate: boolean, clock: Pick<Clock, 'now'>) {
  const transport = createWireTransport({
    allowPrivate,
    connectTimeoutMs: CONNECT_MS,
    connections: 1,
    clock,
  });
  return {
    send: async (body: object): Promise<void> => {
      const headers = { 'content-type': 'application/json', 'user-agent': 'berth' };
      const request = { method: 'POST', url, headers, body: JSON.stringify(body) } as const;
      const answer = await transport.send(request, AbortSignal.timeout(ANSWER_MS));
      await dropBody(answer.body);
      if (answer.status < 200 || answer.status > 299)
        throw new Error(`it answered with status ${answer.status}`);
    },
    close: () => transport.close(),
  };
}

/** Ends the answer. Its status alone says whether the message was accepted. */
async function dropBody(body: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    for await (const _ of body) break;
  } catch {}
}

/** Slack reads `<`, `>` and `&` as markup. */
function toSlackText({ title, text }: AlarmMessage): string {
  return `${title}\n${text}`.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
