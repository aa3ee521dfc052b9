import { cleanText } from '../../orchestrator/model/platform-resource.ts';

/** The request did not reach the driver: nothing was begun. */
export class NotSent extends Error {
  override readonly name = 'NotSent';
}

/** The driver, or what stands before it, refuses the token: nothing was begun. */
export class Unauthorized extends Error {
  override readonly name = 'Unauthorized';
}

/** How an answer was lost: the driver told an error, or ended, or was silent, or its answer is not one of the protocol. */
export type Loss = 'error' | 'end' | 'silence' | 'invalid';

/** It was sent, and what became of it is not known. */
export class AnswerLost extends Error {
  override readonly name = 'AnswerLost';
  readonly loss: Loss;

  constructor(message: string, loss: Loss) {
    super(message);
    this.loss = loss;
  }
}

/** What answers cannot be used by this Berth: its version, or what it can do. */
export class Incompatible extends Error {
  override readonly name = 'Incompatible';
}

/** What a driver wrote, for a sentence of ours: on one line, in quotes, and not long. */
export function quoted(text: string): string {
  const clean = cleanText(text);
  return JSON.stringify(clean.length > 200 ? `${clean.slice(0, 199)}…` : clean);
}

export function messageOf(error: unknown): string {
  return cleanText(error instanceof Error ? error.message : String(error));
}
