/** Hands a mail to whoever delivers it. Rejects where it was not taken. */
export interface Mailer {
  send(mail: { id: string; to: string; subject: string; text: string }): Promise<void>;
}
