import type { AddressInfo } from 'node:net';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { onTestFinished } from 'vitest';
import { SmtpMailer, type SmtpOptions } from './mailer.ts';

export interface ReceivedMail {
  from: string;
  to: string[];
  /** The whole message with its headers. */
  raw: string;
  isSecure: boolean;
  user: string | undefined;
}

/** A real SMTP server on a free port. `answer` may return a reply that refuses the message. */
export async function startSmtpServer(
  options: SMTPServerOptions & { answer?: (nth: number) => { code: number; text: string } | null } = {},
) {
  const received: ReceivedMail[] = [];
  const { answer = () => null, ...rest } = options;
  let messages = 0;
  const server = new SMTPServer({
    disabledCommands: rest.onAuth === undefined ? ['AUTH', 'STARTTLS'] : [],
    logger: false,
    authOptional: rest.onAuth === undefined,
    onData: (stream, session, done) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        messages += 1;
        const refusal = answer(messages);
        if (refusal !== null)
          return done(Object.assign(new Error(refusal.text), { responseCode: refusal.code }));
        const { mailFrom, rcptTo } = session.envelope;
        received.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          raw: Buffer.concat(chunks).toString(),
          isSecure: session.secure,
          user: session.user,
        });
        done();
      });
    },
    ...rest,
  });
  // Some tests need a client that disconnects early.
  server.on('error', () => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.server.address() as AddressInfo;
  let isClosed = false;
  const close = async () => {
    if (isClosed) return;
    isClosed = true;
    await new Promise<void>((resolve) => server.close(resolve));
  };
  onTestFinished(close);
  const mailer = (changes: Partial<SmtpOptions> = {}) => {
    const made = new SmtpMailer({
      host: '127.0.0.1',
      port,
      secure: false,
      from: 'Berth <no-reply@berth.example>',
      ...changes,
    });
    onTestFinished(() => made.close());
    return made;
  };
  return { port, received, mailer, close };
}
