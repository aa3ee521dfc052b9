import { Fatal } from '../../ports/errors.ts';
import type { Context } from './contexts.ts';

/** The error for a server that could not be asked. `more`: a sentence about what it may have done. */
export function unreachable({ name, url, ca_file: ca }: Context, cause: Error, more: string): Fatal {
  const code = String((cause.cause as { code?: unknown } | undefined)?.code ?? '');
  if (/CERT|SIGNED|VERIFY|ISSUER/.test(code)) {
    const remedy =
      ca === undefined
        ? 'for a private certificate authority, add the context again with --ca-file'
        : `check that ${ca} has the certificate of its authority, and that the URL has the name in its certificate`;
    return new Fatal(`The certificate of ${url} (context ${name}) is not trusted (${code}): ${remedy}.`, {
      cause,
    });
  }
  const reason = cause.message.replace(/\.$/, '');
  return new Fatal(
    `The server ${url} of the context ${name} does not answer (${reason}): check that it runs, and the address with \`berth context show ${name}\`.${more}`,
    { cause },
  );
}
