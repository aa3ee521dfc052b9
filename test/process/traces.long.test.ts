import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createClient, until } from '../support/http/http-client.ts';
import { startServing, temporaryFolder, writeFastConfig } from '../support/processes/process.ts';
import { instanceRequest } from '../support/rows/requests.ts';

const SECRET = 'what-nobody-may-find';

/** The files below a folder that have the secret in them. */
function filesWithSecret(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((file) => readFileSync(file).includes(SECRET));
}

it('what cloud_init held is in no file of a server that runs on, soon after the instance is destroyed', async () => {
  using folder = temporaryFolder();
  await using berth = await startServing(['--config', writeFastConfig(folder.path)]);
  const client = createClient(berth.baseUrl, berth.apiKey);
  const { body } = await client.request('POST', '/instances', {
    body: instanceRequest({
      cloud_init: {
        runcmd: [`echo ${SECRET} >> /srv/out`],
        write_files: [{ path: '/srv/secret', content: SECRET.repeat(500) }],
      },
    }),
  });
  const path = `/instances/${body['id']}`;
  await client.waitFor(path, 'ONLINE');
  expect(filesWithSecret(folder.path)).not.toEqual([]);
  await client.request('DELETE', path);
  await client.waitFor(path, 'GONE');
  await until(
    async () => filesWithSecret(folder.path).length === 0,
    () => `it is still in ${filesWithSecret(folder.path).join(', ')}`,
  );
});
