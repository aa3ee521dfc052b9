import { createSandbox } from '../../compose/sandbox/sandbox.ts';

/** Runs a short session with faults, and returns its journal and the events of the faults as text. */
export async function history(seed: number): Promise<string> {
  await using sandbox = await createSandbox({ seed, marketplace: true, providers: ['a', 'b'] });
  const { apiKey = '', baseUrl = '' } = sandbox.defaultAccount.marketplace ?? {};
  const send = async (method: string, path: string, body?: object) => {
    const reply = await sandbox.fetch(`${baseUrl}${path}`, {
      method,
      headers: { Authorization: `Bearer ${apiKey}`, 'Content-Type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return (await reply.json()) as { id: string };
  };
  await sandbox.faults.arm('slow-connection', { provider: 'marketplace', probability: 0.5 });
  await sandbox.faults.arm('half-closed-after-answer', { times: 'sticky', probability: 0.3 });
  await sandbox.faults.arm('dead-connection', { times: 'sticky', probability: 0.1 });
  await sandbox.faults.arm('half-closed-before-answer', { provider: 'marketplace' });
  await send('GET', '/teams').catch(() => undefined);
  for (const fault of ['certificate-expired', 'certificate-wrong-name', 'handshake-reset'] as const) {
    await sandbox.faults.arm(fault);
    await send('GET', '/teams').catch(() => undefined);
  }
  await sandbox.faults.arm('answer-patch', {
    ...{ provider: 'a', route: 'GET /instances/{id}' },
    merge: { note: 'unknown' },
  });
  const { id } = await send('POST', '/deployments', {
    ...{ provider: 'provider-a', offerId: 'a-cpu-8x32', gpuCount: 0, region: 'us-dallas' },
    operatingSystem: 'ubuntu-24.04',
    ssh_public_key:
      'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKjItPiOeL00NyJ28Ghk86GWpCoScix4tTl/A/EOqSmM scenario@example.com',
  });
  await sandbox.clock.advance(90_000);
  await send('GET', `/deployments/${id}`);
  await send('DELETE', `/deployments/${id}`);
  await sandbox.clock.advance(30_000);
  return JSON.stringify([...(await sandbox.control.journal.entries()), ...sandbox.faults.events]);
}

// As a separate process: answers each seed from its parent with the journal.
if (process.argv[1] === import.meta.filename)
  process.on('message', (seed: number) => void history(seed).then((text) => process.send?.(text)));
