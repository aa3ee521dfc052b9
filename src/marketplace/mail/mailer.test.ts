import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { SMTPServerOptions } from 'smtp-server';
import { expect, it, vi } from 'vitest';
import { createCertificates } from '../../compose/sandbox/certificates.ts';
import { MailRefused, SmtpMailer } from './mailer.ts';
import { startSmtpServer } from './smtp.fixture.ts';

const mail = { id: 'mail-1', to: 'ada@example.com', subject: 'Hello', text: 'A text.\n.\nAnother line.\n' };
const login = { user: 'berth', password: 'right' };
const withLogin = {
  onAuth: (({ username, password }, _session, done) => {
    if (username === 'berth' && password === 'right') done(null, { user: 'berth' });
    else done(new Error('who are you'));
  }) satisfies NonNullable<SMTPServerOptions['onAuth']>,
};

it('logs in, and sends nothing without TLS where there is a password', async () => {
  const server = await startSmtpServer({ ...withLogin, allowInsecureAuth: true, hideSTARTTLS: true });
  await expect(server.mailer(login).send(mail)).rejects.toThrow();
  expect(server.received).toEqual([]);
  await server.mailer({ ...login, requireTls: false }).send(mail);
  expect(server.received).toMatchObject([{ user: 'berth', isSecure: false }]);
});

it('logs in over STARTTLS, and over TLS from the first byte', async () => {
  const { ca, valid } = createCertificates(['localhost', '127.0.0.1'], Date.now());
  for (const secure of [false, true]) {
    const server = await startSmtpServer({ ...withLogin, ...valid, secure });
    await server.mailer({ ...login, secure, ca }).send(mail);
    expect(server.received).toMatchObject([{ user: 'berth', isSecure: true }]);
    expect(server.received[0]?.raw).toContain('Another line.');
  }
});

it('does not trust a certificate without a trusted issuer', async () => {
  const server = await startSmtpServer(withLogin);
  const error = await server
    .mailer(login)
    .send(mail)
    .catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(Error);
  expect(error).not.toBeInstanceOf(MailRefused);
  expect(server.received).toEqual([]);
});

it('distinguishes a refused mail from an unreachable server', async () => {
  const refusing = await startSmtpServer({ answer: () => ({ code: 550, text: 'no such user' }) });
  await expect(refusing.mailer().send(mail)).rejects.toThrow(MailRefused);
  const shy = await startSmtpServer({ ...withLogin, allowInsecureAuth: true, hideSTARTTLS: true });
  const wrong = { user: 'berth', password: 'wrong', requireTls: false };
  await expect(shy.mailer(wrong).send(mail)).rejects.not.toThrow(MailRefused);
  const closed = await startSmtpServer();
  await closed.close();
  await expect(closed.mailer().send(mail)).rejects.not.toThrow(MailRefused);
});

it('lets nothing in a mail become a header or a recipient', async () => {
  const server = await startSmtpServer();
  await server.mailer().send({ ...mail, subject: 'Hello\r\nBcc: eve@example.com\r\n\r\nbody' });
  const [received] = server.received;
  expect(received?.to).toEqual(['ada@example.com']);
  const headers = received?.raw.slice(0, received.raw.indexOf('\r\n\r\n')) ?? '';
  expect(headers).not.toMatch(/^bcc:/im);
  expect(headers).toMatch(/^Auto-Submitted: auto-generated$/im);
});

it('treats a server that accepts the connection but stays silent as unreachable, not as a refusal', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const mailer = new SmtpMailer({ host: '127.0.0.1', port, secure: false, from: 'no-reply@berth.example' });
  try {
    let isSettled = false;
    const sent = mailer
      .send(mail)
      .catch((error: unknown) => error)
      .finally(() => {
        isSettled = true;
      });
    const [socket] = (await once(server, 'connection')) as [Socket];
    socket.resume();
    // The client begins to wait for the greeting some turns later.
    while (!isSettled) await vi.advanceTimersByTimeAsync(1_000);
    const error = await sent;
    expect(error).not.toBeInstanceOf(MailRefused);
    expect(error).toMatchObject({ message: expect.stringContaining('Greeting never received') });
  } finally {
    vi.useRealTimers();
    mailer.close();
    server.close();
  }
});
