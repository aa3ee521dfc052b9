import { expect, it } from 'vitest';
import { collectLog } from '../support/doubles/log.ts';
import { PlainProvider } from '../support/doubles/plain-provider.ts';
import { newPublicKey } from '../support/doubles/ssh-keys.ts';
import { startTestMarketplace } from '../support/marketplace.ts';
import { VirtualClock } from '../support/time/virtual-clock.ts';

it('the line of a create names what it made, its team and its request, as the lines of the work do', async () => {
  const clock = new VirtualClock();
  const plain = new PlainProvider(clock);
  const { log, lines } = collectLog();
  const providers = { 'provider-d': { client: plain.client } };
  await using market = await startTestMarketplace({ clock, log, providers });
  const { request, user } = market;
  const key = await request('POST', '/api/ssh-keys', { body: { name: 'laptop', publicKey: newPublicKey() } });
  const deployment = await request('POST', '/api/deployments', {
    body: {
      ...{
        provider: 'provider-d',
        offerId: 'gpu-1',
        gpuCount: 1,
        region: 'eu-one',
        sshKeyId: key.body['id'],
      },
      operatingSystem: 'ubuntu-24.04',
      instanceType: 'dedicated',
    },
  });
  const volume = await request('POST', '/api/volumes', {
    body: { name: 'data', sizeInGb: 100, provider: 'provider-d', region: 'eu-one' },
  });
  for (let second = 0; second < 120; second++) await clock.advance(1_000);
  const named = (request_id: string | null) =>
    lines.filter(({ fields }) => fields['request_id'] === request_id);
  const ofDeployment = named(deployment.headers.get('X-Request-Id'));
  expect(ofDeployment.map(({ message }) => message)).toEqual([
    'request',
    'the provider has made an instance',
    'a deployment changed',
  ]);
  for (const { fields } of ofDeployment)
    expect(fields).toMatchObject({ deployment: deployment.body['id'], team: user.teamId });
  const unknown = await request('DELETE', '/api/deployments/none');
  const refused = await request('GET', '/api/teams', { key: 'none' });
  const [ofUnknown, ofRefused] = [unknown, refused].map(({ headers }) => named(headers.get('X-Request-Id')));
  const who = { user: user.userId, key: expect.stringMatching(/^key-/), address: expect.any(String) };
  for (const [line] of [ofDeployment, ofUnknown ?? []]) expect(line?.fields).toMatchObject(who);
  expect(ofRefused?.[0]?.fields).toMatchObject({ status: 401, address: expect.any(String) });
  const [made, ...others] = named(volume.headers.get('X-Request-Id'));
  expect(made?.fields).toMatchObject({ volume: volume.body['volumeId'], team: user.teamId });
  expect(others).toEqual([]);
});
