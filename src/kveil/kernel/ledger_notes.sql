-- Made with the first note, so that older ledgers need no upgrade of their own, and older versions read newer ledgers.
CREATE TABLE IF NOT EXISTS note(id INTEGER PRIMARY KEY AUTOINCREMENT, token TEXT NOT NULL, name TEXT NOT NULL,
  text TEXT NOT NULL, noted_at TEXT NOT NULL);

CREATE TRIGGER IF NOT EXISTS note_of BEFORE INSERT ON note WHEN EXISTS(SELECT 1 FROM note WHERE id=NEW.id) OR
  NOT EXISTS(SELECT 1 FROM charge WHERE token=NEW.token) BEGIN SELECT RAISE(ABORT,'a note is of a charge, and new'); END;

CREATE TRIGGER IF NOT EXISTS note_keep BEFORE DELETE ON note BEGIN SELECT RAISE(ABORT,'notes are never deleted'); END;

CREATE TRIGGER IF NOT EXISTS note_fixed BEFORE UPDATE ON note BEGIN SELECT RAISE(ABORT,'notes are never changed'); END;
