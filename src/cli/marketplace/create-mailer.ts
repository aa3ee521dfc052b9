import type { MarketplaceConfig } from '../../config/marketplace/schema.ts';
import { SmtpMailer } from '../../marketplace/mail/smtp-mailer.ts';
import type { Mailer } from '../../marketplace/model/mailer.ts';
import type { Log } from '../../ports/log.ts';
import { readSecretSource } from './read-secret-source.ts';

/** Hands mails to the SMTP server of the configuration. Without one there is none, which the start says. */
export function createMailer(
  { mail }: MarketplaceConfig,
  { env, log }: { env: Readonly<Record<string, string | undefined>>; log: Log },
): Mailer | null {
  if (mail === undefined) {
    log.warn(
      {},
      'no mail server is configured: mails are written down, and not sent; name an SMTP server under `mail`',
    );
    return null;
  }
  const { host, port, secure, user, password_env, password_file, from } = mail.smtp;
  const server = { host, port, secure, from };
  if (user === undefined) return new SmtpMailer(server);
  const source = { env: password_env, file: password_file };
  const password = readSecretSource(source, env, `the password of ${user} at ${host}`);
  return new SmtpMailer({ ...server, user, password });
}
