import type { WriterMarks } from '../../orchestrator/model/platform-driver.ts';
import { NoRoomForMark } from '../../ports/errors.ts';
import type { CloudApi } from './api.ts';
import { KEEPS_DATA } from './client.ts';
import { CloudRefusal, classify } from './errors.ts';

/** The mark of the writer is the description of a security group that no port uses: every member may make one. */
export function writerOf(api: CloudApi): WriterMarks {
  const nameOf = (key: string): string => `berth-writer-${key}`;
  const groups = (key: string) => api.allNamed('security-groups', nameOf(key));
  const pathOf = ({ id }: { id: string }): string => `/security-groups/${id}`;
  return {
    // Two first writers at once make two.
    async read(key) {
      const texts = (await groups(key)).map(({ description = '' }) => description);
      return texts.length === 0 ? [''] : texts;
    },
    async write(key, text) {
      const found = await groups(key);
      const description = { description: text };
      for (const group of found)
        if (text === '') await api.remove('network', pathOf(group), KEEPS_DATA);
        else await api.update('network', pathOf(group), 'security_group', description);
      if (found.length > 0 || text === '') return;
      const group = { name: nameOf(key), ...description };
      await api.make('network', '/security-groups', 'security_group', group).catch((error) => {
        const isQuota = error instanceof CloudRefusal && classify(error.message, error.status) === 'quota';
        throw isQuota ? new NoRoomForMark(error.message) : error;
      });
    },
  };
}
