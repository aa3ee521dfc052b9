import { createTransport, type Transporter } from 'nodemailer';

export interface Mailer {
  /**
   * `id` becomes the Message-ID, by which a mail that is sent twice can be recognised.
   * @throws {MailRefused} if this mail was refused; any other error: no mail server could be reached
   */
  send(mail: { id: string; to: string; subject: string; text: string }): Promise<void>;
  close(): void;
}

/** The mail server refused this mail, temporarily or permanently. */
export class MailRefused extends Error {
  override readonly name = 'MailRefused';
}

export interface SmtpOptions {
  host: string;
  port: number;
  /** TLS from the first byte, as on port 465. Otherwise STARTTLS if the server offers it. */
  secure: boolean;
  user?: string;
  password?: string;
  /** A sender such as `Berth <no-reply@example.com>`. */
  from: string;
  /** Whether TLS is required for sending. Default: true if there is a password. */
  requireTls?: boolean;
  /** Additional trusted certificates, in PEM. */
  ca?: string;
}

const CONNECT_MS = 10_000;
const ANSWER_MS = 20_000;

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
      // Mails are plain text, so no content needs to be fetched.
      disableFileAccess: true,
      disableUrlAccess: true,
    });
  }

  /** Several recipients get one mail, which fails only if the server accepts none of them. */
  async send({
    id,
    to,
    subject,
    text,
  }: Omit<Parameters<Mailer['send']>[0], 'to'> & { to: string | readonly string[] }): Promise<void> {
    try {
      await this.#transport.sendMail({
        from: this.#from,
        to: [to].flat().map((address) => ({ name: '', address })),
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

/** Whether the server refused this mail. A wrong password does not concern the mail. */
function isRefusal(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const { responseCode, code } = error as Error & { responseCode?: number; code?: string };
  return responseCode !== undefined && responseCode !== 421 && code !== 'EAUTH';
}
