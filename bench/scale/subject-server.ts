import type { Setting } from './measure.ts';
import { measures } from './measures.ts';
import { answerRounds } from './subject-process.ts';

// The process of one subject: `subject-server.ts ID SETTING`.
const [id = '', setting = ''] = process.argv.slice(2);
const measure = measures.find((one) => one.id === id);
if (measure === undefined) throw new Error(`there is no measure ${id}`);
const { open } = await measure.load();
answerRounds(await open(JSON.parse(setting) as Setting));
