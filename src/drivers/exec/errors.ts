import { cleanText } from '../../orchestrator/model/platform-resource.ts';

/** The request did not reach the driver: nothing has begun. */
export class NotSent extends Error {
  override readonly name = 'NotSent';
}

/** The driver, or a proxy before it, refused the token: nothing has begun. */
export class Unauthorized extends Error {
  override readonly name = 'Unauthorized';
}

/** Why an answer was lost: the driver answered with an error, ended, was silent, or broke the protocol. */
export type Loss = 'error' | 'end' | 'silence' | 'invalid';

/** The request was sent, and its effect is unknown. */
export class AnswerLost extends Error {
  override readonly name = 'AnswerLost';
  readonly loss: Loss;

  constructor(message: string, loss: Loss) {
    super(message);
    this.loss = loss;
  }
}

/** The driver cannot be used with this Berth, because of its version or its capabilities. */
export class Incompatible extends Error {
  override readonly name = 'Incompatible';
}

/** A driver's text for use in a message: on one line, quoted and shortened. */
export function quoted(text: string): string {
  const clean = cleanText(text);
  return JSON.stringify(clean.length > 200 ? `${clean.slice(0, 199)}…` : clean);
}

export function messageOf(error: unknown): string {
  return cleanText(error instanceof Error ? error.message : String(error));
}
