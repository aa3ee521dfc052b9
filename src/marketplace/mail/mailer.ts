import { createTransport, type Transporter } from 'nodemailer';

/** Hands a mail to whoever delivers it. */
export interface Mailer {
  /**
   * `id` makes the Message-ID, so that a mail that is handed over twice can be recognised.
   *
   * @throws {MailRefused} where this mail was not taken; any other error: nobody could be asked
   */
  send(mail: { id: string; to: string; subject: string; text: string }): Promise<void>;
  /** Lets the connections go. */
  close(): void;
}

/** The mail server answered that it does not take this mail, for now or at all. */
export class MailRefused extends Error {
  override readonly name = 'MailRefused';
}

export interface SmtpOptions {
  host: string;
  port: number;
  /** TLS from the first byte, as on port 465; otherwise STARTTLS where the server offers it. */
  secure: boolean;
  user?: string;
  password?: string;
  /** Such as `Berth <no-reply@example.com>`. */
  from: string;
  /** Whether nothing is sent without TLS. Left out: where there is a password. */
  requireTls?: boolean;
  /** Certificates that are trusted beside the usual ones, in PEM. */
  ca?: string;
}

const CONNECT_MS = 10_000;
const ANSWER_MS = 20_000;

/** Hands mails to an SMTP server. */
export class SmtpMailer implements Mailer {
  readonly #transport: Transporter;
  readonly #from: string;
  readonly #domain: string;

  constructor({ host, port, secure, user, password, from, requireTls, ca }: SmtpOptions) {
    this.#from = from;
    this.#domain = /@([a-z0-9.-]+)>?\s*$/i.exec(from)?.[1] ?? host;
    this.#transport = createTransport({
      host,
      port,
      secure,
      requireTLS: requireTls ?? password !== undefined,
      ...(user !== undefined && password !== undefined && { auth: { user, pass: password } }),
      ...(ca !== undefined && { tls: { ca } }),
      connectionTimeout: CONNECT_MS,
      greetingTimeout: CONNECT_MS,
      socketTimeout: ANSWER_MS,
      // A mail is text: nothing in it is fetched.
      disableFileAccess: true,
      disableUrlAccess: true,
    });
  }

  async send({ id, to, subject, text }: Parameters<Mailer['send']>[0]): Promise<void> {
    try {
      await this.#transport.sendMail({
        from: this.#from,
        to: { name: '', address: to },
        subject,
        text,
        messageId: `<${id}@${this.#domain}>`,
        headers: { 'Auto-Submitted': 'auto-generated' },
      });
    } catch (error) {
      throw isRefusal(error) ? new MailRefused(error.message, { cause: error }) : error;
    }
  }

  close(): void {
    this.#transport.close();
  }
}

/** Whether the server spoke of this mail; a wrong password is not about the mail. */
function isRefusal(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const { responseCode, code } = error as Error & { responseCode?: number; code?: string };
  return responseCode !== undefined && responseCode !== 421 && code !== 'EAUTH';
}
