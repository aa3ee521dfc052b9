import { fstatSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Opens a file without a name, to be used as `/dev/stdin` or `/dev/stdout`. Node's own pipes are sockets, which
 * cannot be opened by these names.
 */
export function anonymousFile(content: string | Uint8Array): number {
  const path = join(tmpdir(), `berth-virsh-${crypto.randomUUID()}`);
  const file = openSync(path, 'wx+', 0o600);
  unlinkSync(path);
  const bytes = Buffer.from(content);
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at, bytes.length - at, at);
  return file;
}

export function contentOf(file: number): Buffer {
  const content = Buffer.alloc(fstatSync(file).size);
  for (let at = 0; at < content.length; ) {
    const read = readSync(file, content, at, content.length - at, at);
    if (read === 0) break;
    at += read;
  }
  return content;
}
