import { generateKeyPairSync } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { type CliResult, referenceParts, runCli, temporaryFolder } from '../cli/cli.fixture.ts';
import type { Transport } from '../http/transport.ts';
import { type ReadChallenge, readChallenge } from './challenge.ts';

/** The TLS key that the target of these tests shows. */
export const TLS_KEY = 'ab'.repeat(32);

/** A target, a marketplace with its key, a provider with another, and a folder for their files. */
export function challengeSetup() {
  const folder = temporaryFolder();
  const target = referenceParts({ token: 'api_key', moreRegions: 40 });
  const transport: Transport = {
    ...target.transport,
    send: async (request, limits) => ({
      ...(await target.transport.send(request, limits)),
      tlsKey: TLS_KEY,
    }),
  };
  const parts = { ...target.parts, createTransport: () => transport };
  const writeKeys = (name: string) => {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    const [secret, open] = [folder.file(`${name}.pem`), folder.file(`${name}.pub`)];
    writeFileSync(secret, privateKey.export({ format: 'pem', type: 'pkcs8' }));
    writeFileSync(open, publicKey.export({ format: 'pem', type: 'spki' }));
    return { secret, open };
  };
  const market = writeKeys('market');
  const provider = writeKeys('provider');

  return {
    folder,
    target,
    market,
    provider,
    cli: (...args: string[]): Promise<CliResult> => runCli(args, { parts }),
    /** Issues a challenge; returns its file. */
    async issue(name: string, ...more: string[]): Promise<string> {
      const out = folder.file(`${name}.json`);
      const args = ['challenge', '--key', market.secret, '--out', out];
      const { code, err } = await runCli(
        [...args, ...(more.includes('--level') ? [] : ['--level', 'read-only']), ...more],
        { parts },
      );
      if (code !== 0) throw new Error(err);
      return out;
    },
    /** Lets virtual time pass. */
    pass: async (ms: number): Promise<void> => target.parts.clock?.sleep(ms),
    read: (file: string): ReadChallenge => readChallenge(readFileSync(file, 'utf8')),
    /** Runs for a challenge, and returns the paths of what the run wrote. */
    async answer(challenge: string, level: string, name = 'answer') {
      const [json, transcript] = [folder.file(`${name}.report.json`), folder.file(`${name}.ndjson`)];
      const result = await runCli(
        [
          target.baseUrl,
          ...['--level', level, '--max-cost', '1000', '--state-dir', folder.path, '--challenge', challenge],
          ...(level === 'full' ? ['--race', 'gpu-l4=2'] : []),
          ...['--json', json, '--transcript', transcript, '--sign', provider.secret],
        ],
        { parts },
      );
      return { ...result, json, transcript };
    },
    async [Symbol.asyncDispose]() {
      await target[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}
