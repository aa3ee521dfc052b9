import type { MiddlewareHandler } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { bodyReader } from '../../http/api/body.ts';
import { EXPECTED_PLAIN_TEXT, isPlainText } from '../../ports/plain-text.ts';
import type { ConsoleEnv } from './deps.ts';

/** Forms of the console have only a few short fields. */
const MAX_FORM_BYTES = 64 * 1024;
/** The encoding of every form of the console. */
const FORM = 'application/x-www-form-urlencoded';

const refusals = {
  malformed: (message: string) => new HTTPException(400, { message: `The form cannot be read: ${message}.` }),
  tooLarge: (maxBytes: number) =>
    new HTTPException(413, { message: `The form has more than ${maxBytes} bytes.` }),
  tooMany: () => new HTTPException(503, { message: 'Too many forms are sent at the same time: try again.' }),
};

/** Parses the fields of each form. @throws {HTTPException} 400 or 413 if the body is not a form of the console */
export function readForm(): MiddlewareHandler<ConsoleEnv> {
  const withBytes = bodyReader(MAX_FORM_BYTES, refusals);
  return async (context, next) => {
    if (context.req.method !== 'POST') return next();
    return withBytes(context, (bytes) => {
      const [type = ''] = (context.req.header('content-type') ?? '').split(';');
      if (bytes.length > 0 && type.trim().toLowerCase() !== FORM)
        throw refusals.malformed(`expected Content-Type ${FORM}`);
      const form = new URLSearchParams(bytes.toString());
      for (const [name, text] of form)
        if (!isPlainText(text)) throw refusals.malformed(`${name}: ${EXPECTED_PLAIN_TEXT}`);
      context.set('form', form);
      return next();
    });
  };
}
