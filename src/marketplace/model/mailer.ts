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
