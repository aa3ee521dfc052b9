import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import { type Finding, toFindings, type YamlFile } from './findings.ts';

/** Checks that the TLS files can be read and belong together. The server reads them at startup. */
export function tlsFindings(yaml: YamlFile): Finding[] {
  const tls = (yaml.value['server'] as { tls?: Record<string, unknown> } | null | undefined)?.tls;
  const [cert, key] = ['cert', 'key'].map((part) => readPart(yaml, part, tls?.[part]));
  const unreadable = [cert, key].flatMap((part) =>
    part !== undefined && 'finding' in part ? part.finding : [],
  );
  if (unreadable.length > 0 || cert === undefined || key === undefined) return unreadable;
  if (!('content' in cert) || !('content' in key)) return [];
  try {
    createSecureContext({ cert: cert.content, key: key.content });
    return [];
  } catch (error) {
    const reason = (error as Error).message.split(':').at(-1);
    const message = `the certificate and its key do not match, or are not PEM files without a passphrase (${reason})`;
    return toFindings(yaml, [{ path: ['server', 'tls'], message, at: 'key' }]);
  }
}

function readPart(
  yaml: YamlFile,
  part: string,
  path: unknown,
): { content: Buffer } | { finding: Finding[] } | undefined {
  if (typeof path !== 'string' || path === '') return undefined;
  try {
    return { content: readFileSync(resolve(dirname(yaml.file), path)) };
  } catch {
    const message = 'expected a file that can be read';
    return { finding: toFindings(yaml, [{ path: ['server', 'tls', part], message, at: 'value' }]) };
  }
}
