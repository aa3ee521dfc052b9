import { createSandbox, type SandboxOptions } from '../../src/compose/sandbox/sandbox.ts';

const SSH_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBVvbPHlyOu4Rzn6yIy3N+mIZLDBkd5yTJPYJVgSuSMK test@example.com';

/** Buys a machine in a new sandbox, waits until it is ONLINE, and destroys it. Returns its last status. */
export async function runMachine(options: SandboxOptions): Promise<string> {
  await using sandbox = await createSandbox(options);
  const { baseUrl, apiKey } = sandbox.provider('a');
  const ask = async (method: string, path: string, body?: object) => {
    const response = await sandbox.fetch(`${baseUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: each endpoint has an answer of its own
    return (await response.json()) as any;
  };
  const order = { configuration_id: 'a-cpu-8x32', region: 'us-dallas', ssh_keys: [SSH_KEY] };
  const { id } = await ask('POST', '/instances', order);
  const until = async (wanted: string) => {
    for (let second = 0; second < 120; second++) {
      const { status = 'gone' } = await ask('GET', `/instances/${id}`);
      if (status === wanted) return status;
      await sandbox.clock.advance(1_000);
    }
    throw new Error(`it is not ${wanted}`);
  };
  await until('ONLINE');
  await ask('DELETE', `/instances/${id}`);
  return await until('gone');
}
